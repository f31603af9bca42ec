"""Sweep: every repeat of every point, the report, and a comparison with a baseline."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import DEFAULTS, RunSettings, Say, Session, silent
from orbax_bench_core.experiments.experiment import (
    Conclusion,
    Experiment,
    answered,
    measure_points,
    perform,
)
from orbax_bench_core.pages import count
from orbax_bench_core.records import Run, RunDirectory

if TYPE_CHECKING:
    from orbax_bench_core.analysis.summary import RunSummary

# What shows and writes results is imported while the first worker starts: see `_load_results`.


@dataclasses.dataclass(kw_only=True)
class Sweep(Experiment):
    """All points of a suite, which may be compared with a baseline, and stored as one."""

    limits: bool = True
    compare: str | None = None  # None takes the path of the suite
    capture: str | None = None  # None takes the path of the suite
    metrics: str = "changed"  # `all` shows those of the sweep

    def checked(self, suite: LoadedSuite) -> LoadedSuite:
        """Refuses arms, and reads the baseline once: better now than after the measurement.

        Raises:
            UserError: The suite has arms, a path is empty, or what is at `compare` is no baseline.
        """
        own = suite.suite
        if own.arms is not None:
            raise UserError(
                suite.source.problem(
                    "a suite with arms is a comparison: `orbax-bench ab` runs it", ("arms",)
                )
            )
        self.compare = own.baseline_path if self.compare is None else self.compare
        self.capture = own.baseline_capture_path if self.capture is None else self.capture
        for key, path in (("baseline_path", self.compare), ("baseline_capture_path", self.capture)):
            if path == "":
                raise UserError(f"{key} is empty: give a path, or leave it out")
        if self.compare is not None:
            from orbax_bench_core.baselines import check_baseline

            check_baseline(self.compare)
        return suite

    def announced(self, session: Session) -> Iterable[str]:
        """Says how much it is."""
        info = session.info
        size = f"{count(len(session.plain), 'point')} x {count(info.num_repeats, 'repeat')}"
        return [f"{info.suite_name}: {size}"]

    def measure(self, session: Session, *, lock: bool) -> None:
        """Measures every repeat that has no record yet."""
        measure_points(session, limits=self.limits, lock=lock, meanwhile=_load_results)

    def conclude(self, run: RunDirectory) -> Conclusion:
        """Writes the reports, and shows the tables and what a comparison found."""
        from orbax_bench_core.publishing import publish, publish_verdicts, report_of

        (summary, document), page = publish(run), f"{run.root}/report.html"
        if self.metrics == "all" and self.compare is None:
            from orbax_bench_core.analysis.summary import summarize

            # Of the metrics, `summary` keeps what reports show.
            every = dataclasses.replace(summary, metrics=summarize(Run(run).repeats()).metrics)
            document = report_of(run, every, metrics=True)
        if self.compare is not None:  # the answer is the verdict; the report has the tables
            from orbax_bench_core.analysis.verdicts import compare_stored, verdicts_document

            self.verdicts = compare_stored(self.compare, str(run.root))
            page = str(publish_verdicts(run, self.verdicts))
            document = verdicts_document(self.verdicts, str(run.root))
        outcome = summary.outcome
        if self.capture is not None:
            from orbax_bench_core.baselines import capture_into

            try:
                folder, left_out = capture_into(run, self.capture)
                self.show(f"Baseline: {folder}")
            except UserError as failure:  # no reason to keep back what was measured
                outcome, left_out = outcome.lacking(failure), {"the run": str(failure)}
            for name, reason in left_out.items():
                self.show(f"not captured: {name}: {reason}")
        return Conclusion(
            outcome=outcome,
            verdicts=self.verdicts,
            lines=_lines(summary),
            document=document,
            page=page,
        )


def run(
    suite: str | LoadedSuite,
    directory: str,
    *,
    overrides: Sequence[str] = (),
    limits: bool = True,
    settings: RunSettings = DEFAULTS,
    say: Say = silent,
) -> Run:
    """Measures every point of a suite, writes all reports, and returns what was found.

    As `orbax-bench run`: what is in the directory already is not measured again, and a repeat that
    fails is a record like any other.

        run = orbax_bench_core.run("suite.yaml", "out")
        run.times().groupby(["option.use_ocdbt", "operation"])["seconds"].median()

    Args:
        suite: Path of the suite file, local or gs://, or a suite that was loaded.
        directory: The run directory, local or gs://.
        overrides: Keys of a suite file to change, each `key=value`, as `--override` takes them.
        limits: Whether to measure the limits of machine and storage, once per run.
        settings: How to measure, beside what the suite says.
        say: Takes lines for people; by default nothing is said.

    Returns:
        The run, read from its records.

    Raises:
        UserError: The suite is invalid or has arms, the directory cannot be used, or there is no
            baseline where the suite says.
        CannotRecord: A record could not be written.
    """
    perform(Sweep(limits=limits), suite, directory, overrides=overrides, settings=settings, say=say)
    return Run(RunDirectory(directory))


@dataclasses.dataclass(kw_only=True)
class Study(Sweep):
    """A sweep of saves that block and saves in the background, by the size of the model."""

    limits: bool = False

    def checked(self, suite: LoadedSuite) -> LoadedSuite:
        """Refuses a suite that makes no study."""
        from orbax_bench_core.analysis.async_study import check_points
        from orbax_bench_core.sweep import expand

        check_points(expand(super().checked(suite)).plain, suite)
        return suite

    def conclude(self, run: RunDirectory) -> Conclusion:
        """Reports the sweep, and studies it if every repeat passed: then only that is shown."""
        show, shown = self.show, list[Any]()
        self.show = shown.append
        swept = super().conclude(run)
        if not swept.outcome.incomplete:
            return study(run)
        for part in shown:
            show(part)
        return swept


def study(run: RunDirectory) -> Conclusion:
    """Concludes what saving in the background saves, from the records of any sweep."""
    from orbax_bench_core.answers import ASYNC_STUDY

    found = answered(run, ASYNC_STUDY)
    return dataclasses.replace(found, outcome=found.answer.outcome)


def _load_results() -> None:
    """Imports all that shows and writes results, for a time when this process only waits."""
    # It takes as long as all that has to be there before a worker can be started.
    from orbax_bench_core.publishing import load_writers

    load_writers()


def _lines(summary: RunSummary) -> tuple[str, ...]:
    """Returns the message to a webhook about a run without verdicts."""
    failed = [
        f"{point.point}: {count(point.failed, 'repeat')} failed"
        for point in summary.points
        if point.failed
    ]
    lines = (*failed, *summary.left_out) if summary.outcome.incomplete else ("every repeat passed",)
    return lines or ("nothing was measured",)
