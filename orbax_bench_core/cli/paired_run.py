"""One comparison of two arms from suite to verdict, as the command line runs it."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from orbax_bench_core.cli.measuring import Interrupted, measuring
from orbax_bench_core.compare import passport as passports
from orbax_bench_core.compare.ab import compare_arms
from orbax_bench_core.compare.verdict import VerdictReport
from orbax_bench_core.config.load import LoadedSuite
from orbax_bench_core.execute.runner import RunSettings
from orbax_bench_core.records.run_directory import RunDirectory
from orbax_bench_core.report.console import print_notes
from orbax_bench_core.report.json_log import JsonLog
from orbax_bench_core.report.publish import publish, publish_verdicts
from orbax_bench_core.report.verdicts.console import verdict_table
from orbax_bench_core.report.verdicts.live import LiveVerdicts
from orbax_bench_core.sweep.isolate import expand

EXIT_FAILED: Final = 1
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
            SuiteError: The suite is invalid, or a path cannot be used.
        """
        self._loaded = loaded
        self._points = (expansion := expand(loaded)).points
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
        print_notes(info, self._console)
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
        verdict_table(verdicts, self._console)
        self._say(f"Report: {page}")
        return exit_code(verdicts, allow_inconclusive=allow_inconclusive)

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def exit_code(verdicts: VerdictReport, *, allow_inconclusive: bool = False) -> int:
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
