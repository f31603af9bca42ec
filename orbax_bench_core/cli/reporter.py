"""Reporter of a command that measures: tables and progress for people, or lines of JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

from orbax_bench_core.cli.arguments import LogFormat, results_console
from orbax_bench_core.cli.terminal import new_console, print_plain
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Session, Watcher, to_stderr

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from orbax_bench_core.cli.hosts import MeasureFlags
    from orbax_bench_core.cli.json_log import JsonLog
    from orbax_bench_core.document import Document


class Reporter:
    """Everything that a measurement shows: what begins, its progress, and what it found.

    Attributes:
        console: Where to show results to people.
    """

    def __init__(
        self, console: Console, *, json_log: JsonLog | None, verbose: bool, quiet: bool, json: bool
    ) -> None:
        self.console = console
        self._progress = new_console(quiet=True) if quiet else console
        self._json_log = json_log
        self._verbose = verbose
        self._quiet = quiet
        self._json = json

    @classmethod
    def of(cls, flags: MeasureFlags, *, stderr: bool = False) -> Self:
        """Returns the reporter that a command line asks for.

        An answer as JSON is alone on standard output.
        """
        if flags.verbose and flags.quiet:
            raise UserError("--quiet shows less and --verbose more: give one of them")
        json_log = None
        if flags.log_format is LogFormat.JSON:
            from orbax_bench_core.cli.json_log import JsonLog

            json_log = JsonLog(sys.stdout)
        console = new_console(
            soft_wrap=not sys.stdout.isatty(),
            quiet=json_log is not None,
            stderr=stderr or flags.as_json,
        )
        return cls(
            console,
            json_log=json_log,
            verbose=flags.verbose,
            quiet=flags.quiet,
            json=flags.as_json,
        )

    def view(self, session: Session) -> Watcher:
        """Returns what shows the progress of a session."""
        if self._json_log is not None:
            return self._json_log
        if session.suite.suite.arms is None:
            from orbax_bench_core.cli.progress import ProgressReport

            total = len(session.wanted)
            return ProgressReport(self._progress, total=total, verbose=self._verbose)
        from orbax_bench_core.cli.live_verdicts import LiveVerdicts

        info = session.info
        return LiveVerdicts(
            self._progress, session.pairs, info.gate, info.designs, verbose=self._verbose
        )

    def say(self, line: str) -> None:
        """Shows what it waits for, or what else it says while it measures."""
        if self._quiet:
            to_stderr(line)
        else:
            self.line(line)

    def tell(self, what: Document | str) -> None:
        """Shows what is no result, such as what is about to be measured."""
        _print(self._progress, what)

    def line(self, what: Document | str) -> None:
        """Shows a part of the result."""
        _print(self.console, what)

    def answer(self, found: BaseModel, document: Document, page: str) -> None:
        """Prints an answer on standard output: as JSON and nothing else, or for people."""
        show_answer(found, document, page, as_json=self._json)

    def log(self, event: str, **fields: Any) -> None:
        """Writes an event to the log for machines."""
        if self._json_log is not None:
            self._json_log.write(event, **fields)


def show_answer(found: BaseModel, document: Document, page: str, *, as_json: bool) -> None:
    """Prints an answer on standard output: as JSON and nothing else, or for people."""
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    console = results_console()
    _print(console, document)
    print_plain(console, f"Page: {page}")


def _print(console: Console, what: Document | str) -> None:
    if isinstance(what, str):
        print_plain(console, what)
        return
    from orbax_bench_core.document import print_document

    print_document(what, console)
