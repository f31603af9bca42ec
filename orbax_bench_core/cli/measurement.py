"""Measurement on a terminal or as lines of JSON: its progress, what stops it, what it found."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer

from orbax_bench_core import execute
from orbax_bench_core.cli.arguments import MeasureFlags
from orbax_bench_core.cli.terminal import new_console, show, show_answer
from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.errors import UserError, command
from orbax_bench_core.exit_codes import Exit, exit_code
from orbax_bench_core.experiments import Conclusion, Experiment, NothingFound, begin
from orbax_bench_core.publishing import Notifiers
from orbax_bench_core.records import Run, RunDirectory

if TYPE_CHECKING:
    from pydantic import BaseModel

    from orbax_bench_core import pages
    from orbax_bench_core.cli.json_log import JsonLog

STOPS: Final = (
    KeyboardInterrupt,
    execute.CommonFailure,
    execute.CannotRecord,
    execute.HostsMissing,
)
"""What stops a measurement before its end; all that it has finished is kept."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measuring:
    """How a command measures; with a lock it waits until nothing else of ours does here."""

    settings: execute.RunSettings
    reporter: Reporter
    notifiers: Notifiers
    lock: bool


class Measurement:
    """An experiment that is about to be made.

    Everything that can be wrong with it is found while this is made, before anything is measured.
    """

    def __init__(
        self, experiment: Experiment, suite: LoadedSuite, directory: str, how: Measuring
    ) -> None:
        self.experiment, self._how, self._reporter = experiment, how, how.reporter
        experiment.show = how.reporter.line
        session = begin(experiment, suite, directory, settings=how.settings, say=how.reporter.say)
        self.session = dataclasses.replace(session, watch=how.reporter.view(session))
        self._root = str(session.directory.root)

    def run(self, *, allow_inconclusive: bool) -> int:
        """Makes the experiment, shows what it found, and returns the exit code."""
        experiment, info = self.experiment, self.session.info
        if info.expansion.notes or info.expansion.skipped:
            from orbax_bench_core.analysis.summary import notes_lines

            for line in notes_lines(info):
                self._reporter.tell(line)
        for line in experiment.announced(self.session):
            self._reporter.tell(line)
        try:
            self.measure()
            code = self._conclude(allow_inconclusive=allow_inconclusive)
        except STOPS as stop:
            code = self._say_stopped(stop)
        judged = experiment.verdicts
        verdict = {"verdict": judged and judged.word} if self.session.pairs else {}
        self._reporter.log("run_ended", exit_code=code, **verdict, run_directory=self._root)
        return code

    def measure(self) -> None:
        """Measures what the records lack; raises one of `STOPS` where it is stopped."""
        self.experiment.measure(self.session, lock=self._how.lock)

    def _conclude(self, *, allow_inconclusive: bool) -> int:
        try:
            found = self.experiment.conclude(self.session.directory)
        except OSError as failure:
            self._reporter.line(unwritten(failure, self.experiment.again, self._root))
            return self._failed(f"cannot write: {failure}")
        except NothingFound as nothing:  # what was measured is reported
            from orbax_bench_core.publishing import publish

            with contextlib.suppress(OSError, UserError):
                publish(self.session.directory)
            self._reporter.line(str(nothing))
            return self._failed(str(nothing))
        if found.document is not None:
            self._reporter.answer(found.answer, found.document, found.page)
        code = exit_code(found.outcome, allow_inconclusive=allow_inconclusive)
        if found.verdicts is not None:
            failed = found.outcome.incomplete
            self._how.notifiers.verdicts(found.verdicts, self._root, failed=failed)
        else:
            suite, state = self.session.info.suite_name, found.outcome.state
            self._how.notifiers.ended(suite, state, self._root, found.lines)
        return code

    def _failed(self, why: str) -> int:
        self._how.notifiers.failed(self.session.info.suite_name, self._root, why)
        return Exit.FAILED

    def _say_stopped(self, stop: BaseException) -> int:
        from orbax_bench_core.publishing import settle

        why, code = stopped(stop)
        # Of a run directory that is gone nothing is left here that the command could go on with.
        there = self.session.directory.exists()
        self._reporter.line(f"{why}; {self._kept(code)}" if there else why)
        if there:
            with contextlib.suppress(OSError):  # it may be the disk that has ended the run
                settle(Run(self.session.directory))
        if code != Exit.INTERRUPTED:  # somebody wanted that
            self._failed(why)
        return code

    def _kept(self, code: int) -> str:
        """Returns how many repeats need not be measured again, and how to go on."""
        repeats, again = self.session.wanted, "Run the same command again to"
        if code != Exit.INTERRUPTED:
            again = "Put that right, then run the same command again to"
        with contextlib.suppress(OSError, UserError):  # it may be the disk that has ended it
            if repeats:
                points = Run(self.session.directory).points()
                made = [one for point in points for one in point.repeats if not one.warmup]
                kept = sum(one.finished for one in made)
                failed = f", and {len(made) - kept} failed" if kept < len(made) else ""
                done = f"{kept} of {len(repeats)} repeats are done and kept{failed}."
                return f"{done}\n{again} measure the rest."
        return f"what is done is kept. {again} go on."


def stopped(stop: BaseException) -> tuple[str, int]:
    """Returns the message about an error that stopped a measurement, and the exit code."""
    if isinstance(stop, KeyboardInterrupt):
        return "interrupted", Exit.INTERRUPTED
    return f"stopped: {stop}", Exit.FAILED


def unwritten(failure: OSError, verb: str, root: str) -> str:
    """Returns the advice when the results of a run cannot be written; `verb` writes them again."""
    return (
        f"cannot write the results to {root}: {failure}\nEvery record is kept: make room, or make "
        f"it writable, then `{command(verb, root)}`"
    )


def conclude_again(
    conclude: Callable[[RunDirectory], Conclusion],
    directory: str,
    flags: MeasureFlags,
    *,
    otherwise: str,
    allow_inconclusive: bool = False,
) -> NoReturn:
    """Concludes once more from what was measured, and exits."""
    if flags.override:
        raise UserError("--override changes a suite that is measured: give --output-directory")
    if flags.notify is not None:
        raise UserError("--notify reports on a suite that is measured: give --output-directory")
    run = RunDirectory(directory)
    if not run.exists():
        raise UserError(f"{directory} is not a run directory. {otherwise}")
    try:
        found = conclude(run)
    except OSError as failure:
        raise UserError(f"cannot write into {run.root}: {failure}") from None
    Notifiers.of().renew_site(directory)
    assert found.document is not None
    how = {"as_json": flags.as_json, "details": flags.details}
    show_answer(found.answer, found.document, found.page, **how)
    raise typer.Exit(exit_code(found.outcome, allow_inconclusive=allow_inconclusive))


class Reporter:
    """Everything that a measurement shows: what begins, its progress, and what it found."""

    def __init__(self, flags: MeasureFlags, *, stderr: bool = False) -> None:
        """Shows what a command line asks for; an answer as JSON is alone on standard output."""
        if flags.verbose and flags.quiet:
            raise UserError("--quiet shows less and --verbose more: give one of them")
        self._flags = flags
        self._json_log: JsonLog | None = None
        if flags.log_format == "json":
            from orbax_bench_core.cli.json_log import JsonLog

            self._json_log = JsonLog(sys.stdout)
        self._console = new_console(
            soft_wrap=not sys.stdout.isatty(),
            quiet=self._json_log is not None,
            stderr=stderr or flags.as_json,
        )
        self._progress = new_console(quiet=True) if flags.quiet else self._console

    def view(self, session: execute.Session) -> execute.Watcher:
        """Returns the display of a session's progress."""
        if self._json_log is not None:
            return self._json_log
        if session.suite.suite.arms is None:
            from orbax_bench_core.cli.progress import ProgressReport

            total = len(session.wanted)
            return ProgressReport(self._progress, total=total, verbose=self._flags.verbose)
        from orbax_bench_core.cli.live_verdicts import LiveVerdicts

        info = session.info
        how = {"verbose": self._flags.verbose}
        return LiveVerdicts(
            self._progress, session.pairs, info.gate, info.designs, info.more, **how
        )

    def say(self, line: str) -> None:
        """Shows what it waits for, or what else it says while it measures."""
        (execute.to_stderr if self._flags.quiet else self.line)(line)

    def tell(self, what: pages.Document | str) -> None:
        """Shows what is no result, such as what is about to be measured."""
        for part in what.split("\n") if isinstance(what, str) else (what,):
            show(part, self._progress)

    def line(self, what: pages.Document | str) -> None:
        """Shows a part of the result."""
        for part in what.split("\n") if isinstance(what, str) else (what,):
            show(part, self._console, details=self._flags.details)

    def answer(self, found: BaseModel, document: pages.Document, page: str) -> None:
        """Prints an answer on standard output: as JSON and nothing else, or for people.

        In a log for machines nothing is for people.
        """
        if self._json_log is not None and not self._flags.as_json:
            return
        how = {"as_json": self._flags.as_json, "details": self._flags.details}
        show_answer(found, document, page, **how)

    def log(self, event: str, **fields: Any) -> None:
        """Writes an event to the log for machines."""
        if self._json_log is not None:
            self._json_log.write(event, **fields)
