"""Operators that run one step, on the worker or in a pod."""

from __future__ import annotations

import collections
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow.sdk import BaseOperator

from orbax_bench_airflow.outcome import check, returned

_LAST_LINES = 20
_LONGEST_LINE = 2**24
"""Characters of a line that are held: what a step returns is one, and has a name for each point."""
_LONGEST_SHOWN = 2000
_GRACE_S = 30.0
"""Seconds in which a step that is told to end keeps what it has measured."""


def note_on_outlets(context: Any, result: Any) -> None:
    """Notes what a step returned on the events of its outlets, for what is scheduled by them."""
    for asset in context["task"].outlets:
        context["outlet_events"][asset].extra = {"returned": result}


class StepOperator(BaseOperator):
    """One step as a process of the Airflow worker; returns what the step returns."""

    template_fields: ClassVar[Sequence[str]] = ("arguments", "environment")

    def __init__(
        self,
        *,
        arguments: Sequence[str],
        command: str = "orbax-bench",
        environment: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keeps what is to be run.

        Args:
            arguments: The step and its words, such as `["aggregate", "-o", "/shared/run"]`.
            command: Path of `orbax-bench`, in the environment that has JAX.
            environment: Variables beside those of the worker.
            kwargs: Those of every operator.
        """
        super().__init__(**kwargs)
        self.arguments = arguments
        self.command = command
        self.environment = environment
        self._process: subprocess.Popen[str] | None = None

    def execute(self, context: Any) -> Any:
        """Runs the step, and passes its lines on to the log."""
        last: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        line = ""
        with subprocess.Popen(
            [self.command, "step", *self.arguments],
            env={**os.environ, **(self.environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as self._process:
            assert self._process.stdout is not None
            try:
                while line_or_part := self._process.stdout.readline(_LONGEST_LINE):
                    line = line_or_part.rstrip()
                    shown = line[:_LONGEST_SHOWN]
                    self.log.info(shown)
                    last.append(shown)
            except BaseException:
                # At the end of `with` the step is waited for, and one that hangs does not end.
                self.on_kill()
                raise
        check(self._process.returncode, self.arguments[0], "\n".join(last))
        result = returned(line, self.arguments[0])
        note_on_outlets(context, result)
        return result

    def on_kill(self) -> None:
        """Ends the step, kindly at first: what it has measured is kept."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
