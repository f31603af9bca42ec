"""Sweep on a terminal: every point, the report, baselines, and the exit code."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from orbax_bench_core.cli.measurement import Interrupted, Measurement, stoppable
from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.document import count, wait
from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import exit_code
from orbax_bench_core.files import PASSPORT, user_cache
from orbax_bench_core.steps import measure_points

if TYPE_CHECKING:
    from orbax_bench_core.analysis.verdicts import MetricsShown


@dataclasses.dataclass(frozen=True, kw_only=True)
class Baselines:
    """Baseline that a run is compared with, and the folder where it is stored as one.

    Attributes:
        compare: A stored baseline or run directory; None compares with nothing.
        capture: The folder of the new baseline; None stores none.
        metrics: Metrics of the comparison that a terminal shows.
    """

    compare: str | None = None
    capture: str | None = None
    metrics: MetricsShown = "changed"

    @classmethod
    def of(
        cls,
        suite: LoadedSuite,
        *,
        compare: str | None = None,
        capture: str | None = None,
        metrics: MetricsShown = "changed",
    ) -> Baselines:
        """Returns what the command line says or else the suite, and reads the baseline once.

        Args:
            suite: The suite.
            compare: What the command line says; None leaves it to the suite.
            capture: Likewise.
            metrics: Metrics of the comparison that a terminal shows.

        Raises:
            UserError: There is no such baseline, or a path is empty, which is better known
                before the measurement.
        """
        own = suite.suite
        found = cls(
            compare=own.baseline_path if compare is None else compare,
            capture=own.baseline_capture_path if capture is None else capture,
            metrics=metrics,
        )
        for key, path in (
            ("baseline_path", found.compare),
            ("baseline_capture_path", found.capture),
        ):
            if path == "":
                raise UserError(f"{key} is empty: give a path, or leave it out")
        if found.compare is not None:
            from orbax_bench_core.baselines import check_baseline

            check_baseline(found.compare)
        return found


class SweepRun(Measurement):
    """A suite whose points are about to be measured."""

    def run(self, *, limits: bool, baselines: Baselines) -> int:
        """Measures every point, shows what was found, and returns the exit code.

        Args:
            limits: Whether to measure what the machine and the storage can do, too.
            baselines: What to compare with, and where to store it.
        """
        info = self._session.info
        self._say_notes()
        repeats = count(info.num_repeats, "repeat")
        size = f"{count(len(self._session.plain), 'point')} x {repeats}"
        self._announce(f"{info.suite_name}: {size}{self._expected()}")
        try:
            with stoppable():
                measure_points(
                    self._session, limits=limits, lock=self._lock, meanwhile=_load_results
                )
        except Interrupted as stop:
            self._say_stopped(stop)
            self._tell_stopped(stop)
            code = stop.code
        else:
            code = self._conclude_run(baselines)
        self._log_end(exit_code=code)
        return code

    def _expected(self) -> str:
        """Returns about how long the repeats will take, where the user's passport tells.

        Raises:
            UserError: The passport is damaged.
        """
        if not user_cache(PASSPORT).exists():
            return ""
        from orbax_bench_core.analysis import noise

        info, root = self._session.info, str(self._session.directory.root)
        known = noise.find(None)
        if known is None:  # it has gone meanwhile
            return ""
        minutes = noise.run_minutes(self._session.plain, info.num_repeats, info.gate, known, root)
        return "" if minutes is None else f", about {wait(minutes)}"

    def _conclude_run(self, baselines: Baselines) -> int:
        from orbax_bench_core.cli import sweep_results

        directory = self._session.directory
        try:
            summary, verdicts = sweep_results.show(
                self._session,
                self._console,
                baseline=baselines.compare,
                metrics=baselines.metrics,
            )
            if baselines.capture is not None:
                sweep_results.capture(directory, baselines.capture, self._say)
        except OSError as failure:
            return self._unwritten(failure, "report")
        self._say(f"Run directory: {directory.root}")
        self._say(f"Report: {directory.root}/report.html")
        code, suite = exit_code(summary.outcome), self._session.info.suite_name
        if verdicts is None:
            self._notifiers.run(suite, summary, code, str(directory.root))
        else:
            self._notifiers.verdicts(verdicts, code, str(directory.root))
        return code


def _load_results() -> None:
    """Imports all that shows and writes results, for a time when this process only waits.

    It takes as long as all that has to be there before a worker can be started.
    """
    from orbax_bench_core.cli import sweep_results  # noqa: F401
    from orbax_bench_core.steps import load_writers

    load_writers()


def without_arms(suite: LoadedSuite) -> LoadedSuite:
    """Returns a suite that has no arms.

    Raises:
        UserError: It has.
    """
    if suite.suite.arms is not None:
        raise UserError(
            suite.source.problem(
                "a suite with arms is a comparison: `orbax-bench ab` runs it", ("arms",)
            )
        )
    return suite
