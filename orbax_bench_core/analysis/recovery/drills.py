"""Drills of a run, from its records: phases, losses, success; and the model of `recovery.json`."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from orbax_bench_core.analysis.intervals import MISS, median_interval
from orbax_bench_core.analysis.verdicts import PointVerdict, judge_run
from orbax_bench_core.config import Arm
from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.files import ResultModel
from orbax_bench_core.gate import Word
from orbax_bench_core.measure import PEERS_NOTICE, STEPS_LOST, TIME, UNCOMMITTED
from orbax_bench_core.reasons import Reasons
from orbax_bench_core.records import Repeat, Run, Series

if TYPE_CHECKING:
    import pandas

PhaseName = Literal["notice", "start", "restore", "first_step", "recovery"]
"""Phases of a recovery, in order, and their sum."""


class Phase(ResultModel):
    """One phase over the drills of a series."""

    phase: PhaseName  # which
    n: int  # number of drills that came through it
    median: float  # median seconds, as measured
    fastest: float  # fewest seconds of a drill
    slowest: float  # most seconds of a drill
    # lower end of an interval that holds the median in at least 95 % of cases; None below 6 drills,
    # which have none
    low: float | None = None
    high: float | None = None  # upper end of it
    # seconds that were given for what this machine cannot show, such as the replacement of a node;
    # in none of the others
    added: float = 0.0

    @property
    def total(self) -> float:
        """Seconds with what was given."""
        return self.median + self.added


class PhaseVerdict(ResultModel):
    """One phase in both arms of a comparison."""

    phase: str
    word: Word  # what its times say
    primary: bool  # whether it takes part in the verdict
    ratio: float | None = None  # candidate over baseline; None if it could not be judged
    low: float | None = None  # lower end of its interval
    high: float | None = None  # upper end of it


class RecoverySeries(ResultModel):
    """The drills of one point, or of one arm of a pair."""

    series_id: str
    name: str  # its name
    arm: Arm | None  # the arm; None outside of a comparison
    drills: int  # how many were made; the first attempt counts
    recovered: int  # how many came back and took a step
    # whether each of those restored the state of a job that was never killed; otherwise they only
    # did not crash
    verified: bool
    phases: tuple[Phase, ...]  # each phase; none where no drill came back
    steps_lost: tuple[int, ...]  # steps that each drill lost
    uncommitted: tuple[int, ...]  # directories that each kill left uncommitted
    # seconds after which processes that were left alone noticed by themselves, of each drill that
    # waited for it
    peers_s: tuple[float, ...]
    reasons: tuple[str, ...]  # why the others failed

    def phase(self, name: PhaseName) -> Phase | None:
        """Returns one phase; None if no drill came back."""
        return next((phase for phase in self.phases if phase.phase == name), None)


class PairVerdict(ResultModel):
    """Verdict on a pair of arms."""

    point: str  # name of the pair
    word: Word  # the verdict
    reason: Reasons  # what keeps it from passing; empty when it passes
    phases: tuple[PhaseVerdict, ...]  # each phase


class Recovery(ResultModel):
    """Result of recovery drills.

    Attributes:
        schema_version: Version of this layout. Version 1 had a sentence in the place of a reason.
        run_id: The run.
        suite: Name of its suite.
        series: One per point, or per arm of a pair.
        verdicts: One per pair; none without arms.
    """

    schema_version: Literal[1, 2] = 2
    run_id: str
    suite: str
    series: tuple[RecoverySeries, ...]
    verdicts: tuple[PairVerdict, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """What an exit code is made of; of times in both arms the verdicts of the run say more."""
        lost = any(series.recovered < series.drills for series in self.series)
        return Outcome(word="not back" if lost else "", incomplete=lost)

    def table(self) -> pandas.DataFrame:
        """Returns one row per series and phase, with what each series lost.

        Times are in seconds; `low_s` and `high_s` are the ends of the interval of the median.
        """
        import pandas

        return pandas.DataFrame(
            [
                {
                    "series_id": series.series_id,
                    "series": series.name,
                    "arm": series.arm or "",
                    "drills": series.drills,
                    "recovered": series.recovered,
                    "verified": series.verified,
                    "phase": phase.phase,
                    "n": phase.n,
                    "median_s": phase.median,
                    "fastest_s": phase.fastest,
                    "slowest_s": phase.slowest,
                    "low_s": phase.low,
                    "high_s": phase.high,
                    "added_s": phase.added,
                    "most_steps_lost": max(series.steps_lost, default=None),
                }
                for series in self.series
                for phase in series.phases
            ]
        )


PHASES: Final[tuple[PhaseName, ...]] = ("notice", "start", "restore", "first_step")
TOTAL: Final = "recovery"


def recovery_of(run: Run, added: Mapping[PhaseName, float] | None = None) -> Recovery:
    """Summarizes the drills of a run.

    Args:
        run: The run.
        added: Seconds by phase of what this machine cannot show, such as the replacement of a node.

    Raises:
        UserError: The run has no drill; the message has the reason of the first failure.
    """
    found = [_series(series, list(run.repeats(series)), added or {}) for series in run.series()]
    if not any(series.drills for series in found):
        reasons = (repeat.reason for each in run.series() for repeat in run.repeats(each))
        why = next((f" ({reason})" for reason in reasons if reason), "")
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


def _series(
    series: Series, repeats: list[Repeat], added: Mapping[PhaseName, float]
) -> RecoverySeries:
    back = [repeat for repeat in repeats if not repeat.first_failed and repeat.counts]
    drilled = [repeat for repeat in back if _values(repeat, TOTAL, TIME)]
    # A drill that came back only when it was tried again counts as one that did not.
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
    found = median_interval(values)
    known = found.coverage >= 1 - MISS
    return Phase(
        phase=name,
        n=len(values),
        median=statistics.median(values),
        fastest=min(values),
        slowest=max(values),
        low=found.low if known else None,
        high=found.high if known else None,
        added=added,
    )


def _counts(drilled: Iterable[Repeat], metric: str) -> tuple[int, ...]:
    return tuple(int(max(_values(repeat, TOTAL, metric), default=0)) for repeat in drilled)


def _values(repeat: Repeat, operation: str, metric: str) -> list[float]:
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
