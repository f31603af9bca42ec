"""Drills of a run: phases, losses and success, from its records."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Final

from orbax_bench_core.analysis.intervals import median_interval
from orbax_bench_core.analysis.recovery.model import (
    PairVerdict,
    Phase,
    PhaseName,
    PhaseVerdict,
    Recovery,
    RecoverySeries,
)
from orbax_bench_core.analysis.verdicts import PointVerdict, judge_run
from orbax_bench_core.errors import UserError
from orbax_bench_core.measure import PEERS_NOTICE, STEPS_LOST, TIME, UNCOMMITTED
from orbax_bench_core.records import Repeat, Run, Series

PHASES: Final[tuple[PhaseName, ...]] = ("notice", "start", "restore", "first_step")
TOTAL: Final = "recovery"


def recovery_of(run: Run, added: Mapping[PhaseName, float] | None = None) -> Recovery:
    """Summarizes the drills of a run."""
    found = [_series(series, list(run.repeats(series)), added or {}) for series in run.series()]
    if not any(series.drills for series in found):
        why = next((reason for series in run.series() if (reason := _reason(run, series))), "")
        raise UserError(
            f"{run.directory.root} holds no drill{why}: `orbax-bench recovery SUITE -o DIR` "
            "measures them, of a suite with the benchmark training_job"
        )
    return Recovery(
        run_id=run.info.run_id,
        suite=run.info.suite_name,
        series=tuple(found),
        verdicts=tuple(map(_verdict, judge_run(run.directory).points)) if run.info.paired else (),
    )


def _reason(run: Run, series: Series) -> str:
    """Returns why a repeat of a series was no drill, in brackets; empty where nothing tells."""
    reason = next((repeat.reason for repeat in run.repeats(series) if repeat.reason), "")
    return reason and f" ({reason})"


def _series(
    series: Series, repeats: list[Repeat], added: Mapping[PhaseName, float]
) -> RecoverySeries:
    back = [repeat for repeat in repeats if not repeat.first_failed and repeat.counts]
    drilled = [repeat for repeat in back if _values(repeat, TOTAL, TIME)]
    tried = [repeat for repeat in repeats if repeat.first_failed] + drilled
    return RecoverySeries(
        series_id=series.id,
        name=series.name,
        arm=series.arm,
        drills=len(tried),
        recovered=len(drilled),
        verified=bool(drilled) and all(repeat.verified == "saved" for repeat in drilled),
        phases=_phases(drilled, added),
        steps_lost=_counts(drilled, STEPS_LOST.name),
        uncommitted=_counts(drilled, UNCOMMITTED.name),
        peers_s=tuple(
            max(values)
            for repeat in drilled
            if (values := _values(repeat, TOTAL, PEERS_NOTICE.name))
        ),
        reasons=tuple(
            dict.fromkeys(repeat.first_reason for repeat in repeats if repeat.first_failed)
        ),
    )


def _phases(drilled: list[Repeat], added: Mapping[PhaseName, float]) -> tuple[Phase, ...]:
    if not drilled:
        return ()
    # Of several processes the slowest: the job goes on when the last one does.
    seconds = [{name: max(_values(repeat, name, TIME)) for name in PHASES} for repeat in drilled]
    found = [
        _phase(name, [times[name] for times in seconds], added.get(name, 0.0)) for name in PHASES
    ]
    total = _phase(TOTAL, [sum(times.values()) for times in seconds], sum(added.values()))
    return (*found, total)


def _phase(name: PhaseName, values: list[float], added: float) -> Phase:
    found, median = median_interval(values), statistics.median(values)
    return Phase(
        phase=name, n=len(values), median=median, low=found.low, high=found.high, added=added
    )


def _counts(drilled: Iterable[Repeat], metric: str) -> tuple[int, ...]:
    return tuple(int(max(_values(repeat, TOTAL, metric), default=0)) for repeat in drilled)


def _values(repeat: Repeat, operation: str, metric: str) -> list[float]:
    """Returns the value of a metric on each host that has it."""
    return list(repeat.values(metric).get((operation, 0), {}).values())


def _verdict(verdict: PointVerdict) -> PairVerdict:
    return PairVerdict(
        point=verdict.point,
        word=verdict.word,
        reason=verdict.reason,
        phases=tuple(
            PhaseVerdict(
                phase=found.operation,
                word=found.verdict.word,
                primary=found.primary,
                ratio=found.verdict.ratio,
                low=found.verdict.low,
                high=found.verdict.high,
            )
            for found in verdict.operations
            if found.operation in (*PHASES, TOTAL)
        ),
    )
