"""Sweep on a terminal: every point or a search, the report, baselines, and the exit code."""

from __future__ import annotations

import dataclasses

from orbax_bench_core.analysis import noise as passports
from orbax_bench_core.analysis.summary import notes_document, terminal_document
from orbax_bench_core.analysis.verdicts import compare_stored, verdicts_document
from orbax_bench_core.baselines import capture_into, load_baseline
from orbax_bench_core.cli.measurement import Interrupted, Measurement, stoppable
from orbax_bench_core.cli.results import run_exit_code
from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.document import count, print_document
from orbax_bench_core.errors import UserError
from orbax_bench_core.steps import (
    answer_of,
    limits_of,
    load_writers,
    measure_points,
    publish,
    publish_verdicts,
    search_points,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Baselines:
    """Baseline that a run is compared with, and the folder where it is stored as one.

    Attributes:
        compare: A stored baseline or run directory; None compares with nothing.
        capture: The folder of the new baseline; None stores none.
    """

    compare: str | None = None
    capture: str | None = None

    @classmethod
    def of(
        cls, suite: LoadedSuite, *, compare: str | None = None, capture: str | None = None
    ) -> Baselines:
        """Returns what the command line says or else the suite, and reads the baseline once.

        Args:
            suite: The suite.
            compare: What the command line says; None leaves it to the suite.
            capture: Likewise.

        Raises:
            UserError: There is no such baseline, which is better known before the measurement.
        """
        own = suite.suite
        found = cls(
            compare=compare or own.baseline_path, capture=capture or own.baseline_capture_path
        )
        if found.compare is not None:
            load_baseline(found.compare)
        return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchFor:
    """Search for the best point instead of a full sweep.

    Attributes:
        goal: What to make small; None takes `save`, or the first measure that there is.
    """

    goal: str | None = None


class SweepRun(Measurement):
    """A suite whose points are about to be measured."""

    def run(
        self,
        *,
        limits: bool,
        baselines: Baselines,
        search: SearchFor | None = None,
        passport: passports.Passport | None = None,
    ) -> int:
        """Measures every point, shows what was found, and returns the exit code.

        Args:
            limits: Whether to measure what the machine and the storage can do, too.
            baselines: What to compare with, and where to store it.
            search: With a search, points that are clearly behind are dropped after some rounds.
            passport: Noise of this machine, which tells how long it will probably take.
        """
        info = self._session.info
        print_document(notes_document(info), self._progress)
        repeats = count(info.num_repeats, "repeat")
        size = f"{count(len(self._session.plain), 'point')} x {repeats}"
        self._announce(f"{info.suite_name}: {size}{self._expected(passport)}")
        try:
            with stoppable():
                if search is None:
                    measure_points(
                        self._session, limits=limits, lock=self._lock, meanwhile=load_writers
                    )
                else:
                    self._search(search, limits=limits)
        except Interrupted as stop:
            self._say_stopped(stop)
            self._tell_stopped(stop)
            code = stop.code
        else:
            code = self._conclude_run(baselines)
        self._log_end(exit_code=code)
        return code

    def _expected(self, passport: passports.Passport | None) -> str:
        """Returns about how long the repeats will take, where the passport knows such points."""
        if passport is None:
            return ""
        info, points = self._session.info, self._session.plain
        root = str(self._session.directory.root)
        minutes = passports.run_minutes(points, info.num_repeats, info.gate, passport, root)
        return "" if minutes is None else f", about {passports.wait(minutes)}"

    def _search(self, search: SearchFor, *, limits: bool) -> None:
        found = search_points(self._session, goal=search.goal, limits=limits, lock=self._lock)
        whole = len(self._session.plain) * self._session.info.num_repeats
        self._say(
            f"search ended after {count(found.rounds, 'round')}: {found.ended}; {found.measured} "
            f"repeats instead of {whole}"
        )

    def _conclude_run(self, baselines: Baselines) -> int:
        directory = self._session.directory
        try:
            summary = publish(directory)
            extra = limits_of(directory, self._session.info, summary)
            answer = answer_of(directory)
            document = terminal_document(self._session.info, summary, extra, answer)
            print_document(document, self._console)
            verdicts = None
            if baselines.compare is not None:
                verdicts = compare_stored(baselines.compare, str(directory.root))
                publish_verdicts(directory, verdicts)
                print_document(verdicts_document(verdicts), self._console)
            if baselines.capture is not None:
                self._capture(baselines.capture)
        except OSError as failure:
            return self._unwritten(failure, "report")
        self._say(f"Run directory: {directory.root}")
        self._say(f"Report: {directory.root}/report.html")
        code, suite = run_exit_code(summary, self._console), self._session.info.suite_name
        if verdicts is None:
            self._outlets.run(suite, summary, code, str(directory.root))
        else:
            self._outlets.verdicts(verdicts, code, str(directory.root))
        return code

    def _capture(self, path: str) -> None:
        folder, left_out = capture_into(self._session.directory, path)
        self._say(f"Baseline: {folder}")
        for name, reason in left_out.items():
            self._say(f"not captured: {name}: {reason}")


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
