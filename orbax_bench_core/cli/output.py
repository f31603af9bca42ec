"""Output of a command that measures: tables and progress for people, or lines of JSON."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

from rich.console import Console

from orbax_bench_core.cli.arguments import LogFormat
from orbax_bench_core.cli.terminal import new_console
from orbax_bench_core.errors import UserError
from orbax_bench_core.steps import Notifiers

if TYPE_CHECKING:
    from orbax_bench_core.cli.json_log import JsonLog


@dataclasses.dataclass(frozen=True, kw_only=True)
class Output:
    """Output of a measurement: where it is shown, and how much of it.

    Attributes:
        console: Where to show progress and results to people.
        json_log: Where to write progress for machines; None shows it on the console.
        verbose: Whether to show what begins, and what was done before.
        quiet: Whether to show results alone; what is waited for goes to standard error.
        notifiers: Where else to tell what was found.
    """

    console: Console
    json_log: JsonLog | None = None
    verbose: bool = False
    quiet: bool = False
    notifiers: Notifiers = dataclasses.field(default_factory=Notifiers)

    @classmethod
    def to_stdout(
        cls,
        log_format: LogFormat,
        *,
        verbose: bool,
        quiet: bool = False,
        notifiers: Notifiers | None = None,
    ) -> Output:
        """Returns the output of a command: tables for people, or lines of JSON and nothing else.

        Raises:
            UserError: It is to be both verbose and quiet.
        """
        if verbose and quiet:
            raise UserError("--quiet shows less and --verbose more: give one of them")
        as_json = log_format is LogFormat.JSON
        json_log = None
        if as_json:
            from orbax_bench_core.cli.json_log import JsonLog

            json_log = JsonLog(sys.stdout)
        return cls(
            console=new_console(soft_wrap=not sys.stdout.isatty(), quiet=as_json),
            json_log=json_log,
            verbose=verbose,
            quiet=quiet,
            notifiers=notifiers or Notifiers(),
        )

    @property
    def progress(self) -> Console:
        """Where progress is shown."""
        return new_console(quiet=True) if self.quiet else self.console

    @classmethod
    def beside(
        cls,
        *,
        as_json: bool,
        verbose: bool = False,
        quiet: bool = False,
        notifiers: Notifiers | None = None,
    ) -> Output:
        """Returns the output beside an answer, which alone goes to standard output as JSON.

        Raises:
            UserError: It is to be both verbose and quiet.
        """
        output = cls.to_stdout(LogFormat.TEXT, verbose=verbose, quiet=quiet, notifiers=notifiers)
        output.console.stderr = as_json
        return output

    def say(self, line: str) -> None:
        """Shows a line to people, as it is."""
        if self.quiet:
            print(line, file=sys.stderr, flush=True)
        else:
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)
