"""Measurement on a terminal: its progress, what stops it, what it found, and its exit code."""

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Final, NoReturn

import typer

from orbax_bench_core.cli.hosts import MeasureFlags
from orbax_bench_core.cli.reporter import Reporter
from orbax_bench_core.cli.results import show_answer
from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.errors import UserError, command
from orbax_bench_core.execute import CannotRecord, CommonFailure, HostsMissing, RunSettings
from orbax_bench_core.exit_codes import Exit, exit_code
from orbax_bench_core.records import Run, RunDirectory
from orbax_bench_core.steps import Conclusion, Experiment, NothingFound, Notifiers, begin

STOPS: Final = (KeyboardInterrupt, CommonFailure, CannotRecord, HostsMissing)
"""What stops a measurement before its end; all that it has finished is kept."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measuring:
    """How a command measures; with a lock it waits until nothing else of ours does here."""

    settings: RunSettings
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
            from orbax_bench_core.analysis.summary import notes_document

            self._reporter.tell(notes_document(info))
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
            from orbax_bench_core.steps import publish

            with contextlib.suppress(OSError, UserError):
                publish(self.session.directory)
            self._reporter.line(str(nothing))
            return self._failed(str(nothing))
        if found.document is not None:
            self._reporter.answer(found.answer, found.document, found.page)
        code = exit_code(*found.outcomes, allow_inconclusive=allow_inconclusive)
        if found.verdicts is not None:
            self._how.notifiers.verdicts(found.verdicts, code, self._root)
        else:
            self._how.notifiers.ended(self.session.info.suite_name, code, self._root, found.lines)
        return code

    def _failed(self, why: str) -> int:
        self._how.notifiers.failed(self.session.info.suite_name, self._root, why)
        return Exit.FAILED

    def _say_stopped(self, stop: BaseException) -> int:
        from orbax_bench_core.steps import settle

        why, code = stopped(stop)
        # Of a run directory that is gone nothing is left here that the command could go on with.
        there = self.session.directory.exists()
        self._reporter.line(f"{why}; {self._kept()}" if there else why)
        if there:
            with contextlib.suppress(OSError):  # it may be the disk that has ended the run
                settle(Run(self.session.directory))
        if code != Exit.INTERRUPTED:  # somebody wanted that
            self._failed(why)
        return code

    def _kept(self) -> str:
        repeats, again = self.session.wanted, "Run the same command again to"
        with contextlib.suppress(OSError, UserError):  # it may be the disk that has ended it
            if repeats:
                kept = len(repeats) - len(self.session.directory.lost(repeats))
                done = f"{kept} of {len(repeats)} repeats are done and kept."
                return f"{done}\n{again} finish the rest."
        return f"what is done is kept. {again} go on."


def stopped(stop: BaseException) -> tuple[str, int]:
    """Returns what to say of something that has stopped a measurement, and the exit code."""
    if isinstance(stop, KeyboardInterrupt):
        return "interrupted", Exit.INTERRUPTED
    return f"stopped: {stop}", Exit.FAILED


def unwritten(failure: OSError, verb: str, root: str) -> str:
    """Returns what to do when the results of a run cannot be written; `verb` writes them again."""
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
    show_answer(found.answer, found.document, found.page, as_json=flags.as_json)
    raise typer.Exit(exit_code(*found.outcomes, allow_inconclusive=allow_inconclusive))
