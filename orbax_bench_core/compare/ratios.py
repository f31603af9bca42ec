"""Ratios between two runs, point by point, with no verdict."""

from __future__ import annotations

import dataclasses

from orbax_bench_core.results.run_directory import RunDirectory
from orbax_bench_core.results.summary import MetricSummary, RunSummary, summarize

NO_VERDICT = (
    "These are ratios of medians from two separate runs. They give no verdict: a machine that was "
    "busier during one of the runs shows here exactly as a regression would."
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One operation of one point in both runs.

    Attributes:
        point_id: Id of the sweep point.
        point: Name of the sweep point.
        operation: Name of the operation.
        baseline: Its time in the baseline, seconds.
        candidate: Its time in the candidate, seconds.
    """

    point_id: str
    point: str
    operation: str
    baseline: MetricSummary
    candidate: MetricSummary

    @property
    def ratio(self) -> float | None:
        """Median of the candidate over that of the baseline; above 1 is slower."""
        return self.candidate.median / self.baseline.median if self.baseline.median else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        ratios: Operations that both have, by point id.
        only_baseline: Names of points that only the baseline has.
        only_candidate: Names of points that only the candidate has.
    """

    ratios: tuple[Ratio, ...]
    only_baseline: tuple[str, ...]
    only_candidate: tuple[str, ...]


def compare_runs(baseline: RunDirectory, candidate: RunDirectory) -> Comparison:
    """Compares the operation times of two runs; points are matched by id and nothing else.

    Args:
        baseline: The run to compare with.
        candidate: The run that is looked at.

    Raises:
        SuiteError: One of them is not a run directory.
    """
    before, now = _by_operation(baseline), _by_operation(candidate)
    ratios = tuple(
        Ratio(
            point_id=time.point_id,
            point=time.point,
            operation=time.operation,
            baseline=before[key],
            candidate=time,
        )
        for key, time in now.items()
        if key in before
    )
    return Comparison(
        ratios=ratios,
        only_baseline=_missing(before, now),
        only_candidate=_missing(now, before),
    )


_Times = dict[tuple[str, str], MetricSummary]


def _by_operation(run: RunDirectory) -> _Times:
    run.read_info()
    summary: RunSummary = summarize(run.records())
    return {(op.time.point_id, op.time.operation): op.time for op in summary.operations}


def _missing(these: _Times, those: _Times) -> tuple[str, ...]:
    known = {point_id for point_id, _ in those}
    names = {time.point_id: time.point for time in these.values() if time.point_id not in known}
    return tuple(f"{name} ({point_id})" for point_id, name in names.items())
