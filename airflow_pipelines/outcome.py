"""Outcome of a step in Airflow's terms, and of a run of a DAG whose last step tells nobody."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Final

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from orbax_bench_core.exit_codes import MEANINGS, RETRIED, Exit


def returned(line: str, step: str) -> Any:
    """Returns the last line of a step that ended with 0.

    Raises:
        AirflowFailException: That is no JSON: another program ran, or the step is not one of ours.
    """
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        said = f"{step} ended well, and its last line is no JSON: {line[:200]!r}"
        raise AirflowFailException(said) from None


def check(code: int, step: str, said: str = "") -> None:
    """Raises unless a step ended with 0.

    Args:
        code: Its exit code; negative for a signal.
        step: Its name.
        said: The last lines that it printed.

    Raises:
        AirflowFailException: Trying again would end in the same way.
        AirflowException: It may pass when it is tried again.
    """
    if code == Exit.OK:
        return
    known = code in set(Exit)
    reason = MEANINGS[Exit(code)][0] if known else "it was ended from outside"
    message = "\n".join(filter(None, [f"{step} ended with exit code {code}: {reason}", said]))
    final = known and code not in (*RETRIED, Exit.INTERRUPTED)
    raise AirflowFailException(message) if final else AirflowException(message)


_NOTIFY: Final = "ORBAX_BENCH_NOTIFY"
_FINISHING_S: Final = 300.0
"""Longest time for the step that is made up for: the report of a large run takes a minute."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TellFailure:
    """Callback of a DAG whose run has failed, for the case that its last step told nobody of it.

    The task `finish` tells how a run ended, whatever became of the others. Where it could not run
    itself (no pod, no worker, a time limit of the run) this does its work, in Airflow's own
    process: by the same step where there is a command, and otherwise by a message to the webhook.

    Attributes:
        finish: Id of the task that tells.
        words: The step and its words, with templates.
        suite: Path of the suite, which the message names where nothing else is known.
        directory: The run directory, with templates.
        command: Path of `orbax-bench`; empty if Airflow has none.
        environment: Variables beside those of Airflow; Airflow's log shows a callback, and one may
            be a secret.
    """

    finish: str
    words: Sequence[str]
    suite: str
    directory: str
    command: str = ""
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)

    def __call__(self, context: Mapping[str, Any]) -> None:
        """Tells of the failure, unless the task has done so."""
        if self._has_told(context):
            return
        reason = context.get("reason") or "it failed"
        reason = f"the run {context.get('run_id')} of Airflow failed ({reason})"
        try:
            words = [_filled(word, context) for word in (*self.words, "--status", reason)]
            told = bool(self.command) and self._finished(words)
        except Exception as failure:  # noqa: BLE001 - whatever the template or the command did
            print(f"orbax-bench: {self.finish} cannot be made up for: {failure}")
            told = False
        if not told:
            self._announced(reason, context)

    def _has_told(self, context: Mapping[str, Any]) -> bool:
        """Returns whether the run failed by another task: `finish` runs after all of them."""
        last = getattr(context.get("ti"), "task_id", self.finish)
        return context.get("reason") == "task_failure" and last != self.finish

    def _finished(self, words: Sequence[str]) -> bool:
        done = subprocess.run(
            [self.command, "step", *words],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=_FINISHING_S,
        )
        print(done.stdout)
        return done.returncode == Exit.OK

    def _announced(self, reason: str, context: Mapping[str, Any]) -> None:
        from orbax_bench_core.exports.news import News
        from orbax_bench_core.exports.notifications import announce, webhook_at

        address = self.environment.get(_NOTIFY) or os.environ.get(_NOTIFY, "")
        if not address:
            print(f"orbax-bench: {self.finish} told nobody, and {_NOTIFY} is not set here")
            return
        said = (
            f"{reason}, and its last task {self.finish} could not report: its log says why, or "
            "why it never started"
        )
        news = News(
            suite=self.suite,
            state="FAILED",
            run_id="",
            directory=_filled(self.directory, context),
            begun=datetime.datetime.now(datetime.UTC),
            lines=(said,),
        )
        announce(news, webhook_at(address), None, say=print)


def _filled(text: str, context: Mapping[str, Any]) -> str:
    """Returns a text with its templates filled in, or as it is where one of them is not known."""
    from jinja2 import TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    try:
        return str(SandboxedEnvironment().from_string(text).render(**context))
    except TemplateError:
        return text


def tell_failure(dag: Any, callback: TellFailure) -> None:
    """Has a DAG call back when a run of it has failed, beside what it calls already."""
    before = dag.on_failure_callback
    known = [] if before is None else list(before) if isinstance(before, list) else [before]
    dag.on_failure_callback = [*known, callback]
    dag.has_on_failure_callback = True
