"""One suite from file to report, as the command line runs it."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.console import Console

from orbax_bench_core.analysis import noise as passports
from orbax_bench_core.analysis.summary import RunSummary, notes_document, summary_document
from orbax_bench_core.analysis.verdicts import VerdictReport, compare_stored, verdicts_document
from orbax_bench_core.baselines import capture_into, load_baseline
from orbax_bench_core.cli.json_log import JsonLog
from orbax_bench_core.cli.live_verdicts import LiveVerdicts
from orbax_bench_core.cli.progress import ProgressReport
from orbax_bench_core.config import LoadedSuite, UserError, load_suite
from orbax_bench_core.document import print_document
from orbax_bench_core.execute import CannotRecord, RunSettings, measuring_lock, run_points
from orbax_bench_core.limits import ensure_limits
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps import compare_arms, limits_of, publish, publish_verdicts
from orbax_bench_core.sweep import expand

EXIT_FAILED = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Baselines:
    """What to do with baselines; None leaves it to the suite.

    Attributes:
        compare: Baseline to compare with.
        capture: Where to store the run as one.
    """

    compare: str | None
    capture: str | None


class SuiteRun:
    """A suite that is about to be run.

    Everything that can be wrong with it is found while it is made, before anything is measured.
    """

    def __init__(
        self,
        suite: str,
        output_directory: str,
        *,
        overrides: Sequence[str] = (),
        settings: RunSettings,
        baselines: Baselines,
        console: Console,
        json_log: JsonLog | None,
        verbose: bool,
        lock: bool,
        limits: bool,
    ) -> None:
        """Reads and expands the suite, and begins its run directory.

        Args:
            suite: The suite file.
            output_directory: The run directory.
            overrides: Values in place of the suite's, each `KEY.PATH=VALUE`.
            settings: How to run it.
            baselines: What to compare with, and where to store.
            console: Where to show progress and results to people.
            json_log: Where to write progress for machines; None shows it on the console.
            verbose: Whether to show what begins, and what was done before.
            lock: Whether to wait until nothing else of ours measures on this machine.
            limits: Whether to measure what the machine and the storage can do.

        Raises:
            UserError: The suite is invalid, or a path cannot be used.
        """
        self._loaded = load_suite(suite, overrides)
        if self._loaded.suite.arms is not None:
            raise UserError(
                self._loaded.source.problem(
                    "a suite with arms is a comparison: `orbax-bench ab` runs it", ("arms",)
                )
            )
        self._compare_with = baselines.compare or self._loaded.suite.baseline_path
        if self._compare_with is not None:
            load_baseline(self._compare_with)  # better now than after the measurement
        self._capture_path = baselines.capture or self._loaded.suite.baseline_capture_path
        self._points = (expansion := expand(self._loaded)).plain
        self._directory = RunDirectory(output_directory)
        self._info = self._directory.start(self._loaded, expansion)
        self._total = len(self._points) * self._info.num_repeats
        self._settings = settings
        self._console = console
        self._json_log = json_log
        self._progress = json_log or ProgressReport(console, total=self._total, verbose=verbose)
        self._lock = lock
        self._limits = limits

    def run(self) -> int:
        """Runs what is missing, shows what was found, and returns the exit code."""
        print_document(notes_document(self._info), self._console)
        size = f"{len(self._points)} points x {self._info.num_repeats} repeats"
        self._say(f"{self._info.suite_name}: {size}")
        code = self._measure() or self._conclude()
        if self._json_log is not None:
            self._json_log.write(
                "run_ended", exit_code=code, run_directory=str(self._directory.root)
            )
        return code

    def _measure(self) -> int:
        try:
            with measuring(self._say, lock=self._lock), self._progress:
                run_points(
                    self._directory,
                    self._info,
                    self._loaded,
                    self._points,
                    self._settings,
                    self._progress,
                    self._say,
                )
                if self._limits:
                    ensure_limits(self._directory, self._say)
        except Interrupted as stop:
            self._say(
                f"{stop}; {self._progress.ended} of {self._total} repeats are done and kept.\n"
                "Run the same command again to finish the rest."
            )
            return stop.code
        return 0

    def _conclude(self) -> int:
        try:
            summary = publish(self._directory)
        except OSError as failure:
            self._say(
                f"cannot write the results: {failure}\nEvery record is kept: make room, then "
                f"`orbax-bench report {self._directory.root}`"
            )
            return EXIT_FAILED
        limits = limits_of(self._directory, self._info, summary)
        document = summary_document(self._info, summary, extra=limits)
        print_document(document, self._console)
        if self._compare_with is not None:
            verdicts = compare_stored(self._compare_with, str(self._directory.root))
            publish_verdicts(self._directory, verdicts)
            print_document(verdicts_document(verdicts), self._console)
        if self._capture_path is not None:
            self._capture(self._capture_path)
        self._say(f"Run directory: {self._directory.root}")
        return run_exit_code(summary, self._console)

    def _capture(self, path: str) -> None:
        folder, left_out = capture_into(self._directory, path)
        self._say(f"Baseline: {folder}")
        for name in left_out:
            self._say(f"not captured, because a repeat did not pass: {name}")

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def run_exit_code(summary: RunSummary, console: Console) -> int:
    """Returns the exit code of a run that came to its end.

    Args:
        summary: What it found.
        console: Where to say that nothing was measured.
    """
    if not any(point.passed for point in summary.points):
        console.print("[red]Nothing was measured.[/]")
        return EXIT_FAILED
    return EXIT_FAILED if any(point.failed for point in summary.points) else 0


EXIT_REGRESSION: Final = 3
EXIT_INCONCLUSIVE: Final = 4


class PairedRun:
    """A comparison that is about to be made.

    Everything that can be wrong with it is found while it is made, before anything is measured.
    """

    def __init__(
        self,
        loaded: LoadedSuite,
        output_directory: str,
        *,
        settings: RunSettings,
        console: Console,
        json_log: JsonLog | None,
        verbose: bool,
        lock: bool,
        passport: str | None,
    ) -> None:
        """Expands the suite, and begins its run directory.

        Args:
            loaded: The suite, with arms.
            output_directory: The run directory.
            settings: How to run it.
            console: Where to show progress and results to people.
            json_log: Where to write progress for machines; None shows it on the console.
            verbose: Whether to show every operation.
            lock: Whether to wait until nothing else of ours measures on this machine.
            passport: File with the noise of this machine; None takes the user's own, if any.

        Raises:
            UserError: The suite is invalid, or a path cannot be used.
        """
        self._loaded = loaded
        self._points = (expansion := expand(loaded)).pairs
        self._directory = RunDirectory(output_directory)
        self._info = self._directory.start(loaded, expansion)
        self._settings = settings
        self._console = console
        self._json_log = json_log
        self._watch: LiveVerdicts | JsonLog = json_log or LiveVerdicts(
            console, self._points, self._info.gate, verbose=verbose
        )
        self._lock = lock
        self._passport = passports.find(passport)

    def run(self, *, allow_inconclusive: bool = False) -> int:
        """Measures until every point has its verdict, shows them, and returns the exit code.

        Args:
            allow_inconclusive: Whether INCONCLUSIVE is as good as PASS.
        """
        info = self._info
        print_document(notes_document(info), self._console)
        most = info.gate.looks[-1]
        self._say(f"{info.suite_name}: {len(self._points)} points, up to {most} operations per arm")
        self._say(f"  baseline:  {info.baseline}")
        self._say(f"  candidate: {info.candidate}")
        if self._passport is not None:
            root = str(self._directory.root)
            self._say(passports.forecast(self._points, info.gate, self._passport, root))
        try:
            with measuring(self._say, lock=self._lock), self._watch:
                verdicts = compare_arms(
                    self._directory,
                    info,
                    self._loaded,
                    self._points,
                    self._settings,
                    self._watch,
                    self._say,
                )
        except Interrupted as stop:
            self._say(f"{stop}; what is done is kept. Run the same command again to go on.")
            return stop.code
        code = self._conclude(verdicts, allow_inconclusive=allow_inconclusive)
        if self._json_log is not None:
            self._json_log.write(
                "run_ended",
                exit_code=code,
                verdict=verdicts.word,
                run_directory=str(self._directory.root),
            )
        return code

    def _conclude(self, verdicts: VerdictReport, *, allow_inconclusive: bool) -> int:
        try:
            publish(self._directory)
            page = publish_verdicts(self._directory, verdicts)
        except OSError as failure:
            self._say(
                f"cannot write the results: {failure}\nEvery record is kept: make room, then "
                f"`orbax-bench compare {self._directory.root}`"
            )
            return EXIT_FAILED
        print_document(verdicts_document(verdicts), self._console)
        self._say(f"Report: {page}")
        return comparison_exit_code(verdicts, allow_inconclusive=allow_inconclusive)

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def comparison_exit_code(verdicts: VerdictReport, *, allow_inconclusive: bool = False) -> int:
    """Returns the exit code of a comparison: 3 REGRESSION, 1 an arm failed, 4 INCONCLUSIVE, 0 PASS.

    Args:
        verdicts: What it found.
        allow_inconclusive: Whether INCONCLUSIVE is as good as PASS.
    """
    if verdicts.word == "REGRESSION":
        return EXIT_REGRESSION
    if any(point.failed for point in verdicts.points):
        return EXIT_FAILED
    if verdicts.word == "INCONCLUSIVE" and not allow_inconclusive:
        return EXIT_INCONCLUSIVE
    return 0


_EXIT_FAILED = 1
_EXIT_INTERRUPTED = 130


class Interrupted(Exception):
    """A measurement was stopped before its end; all that it has finished is kept.

    Attributes:
        code: Exit code of the command.
    """

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


@contextlib.contextmanager
def measuring(say: Callable[[str], None], *, lock: bool) -> Iterator[None]:
    """Holds the machine's measuring lock, and turns whatever stops a measurement into one error.

    Args:
        say: Takes a line for people.
        lock: Whether to wait until nothing else of ours measures on this machine.

    Raises:
        Interrupted: Somebody stopped it, or a result could not be written.
    """
    # Whoever ends this process in an orderly way, its workers end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with measuring_lock(say) if lock else contextlib.nullcontext():
            yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted", _EXIT_INTERRUPTED) from None
    except CannotRecord as failure:
        raise Interrupted(f"stopped: {failure}", _EXIT_FAILED) from None
