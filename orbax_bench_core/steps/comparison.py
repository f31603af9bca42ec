"""Comparison step: blocks of both arms, judged until every pair has its verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from orbax_bench_core.analysis.verdicts import (
    Evidence,
    PointVerdict,
    VerdictReport,
    evidence_of,
    needs_more,
    report,
    version_differences,
    write_verdicts,
)
from orbax_bench_core.execute import Event, Session, run_pairs
from orbax_bench_core.records import repeats_of
from orbax_bench_core.steps.measuring import measuring
from orbax_bench_core.sweep import Pair


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged(Event):
    """A pair has been looked at.

    Attributes:
        verdict: What its blocks say so far.
    """

    verdict: PointVerdict


def compare_arms(session: Session, *, lock: bool = True) -> VerdictReport:
    """Runs blocks of both arms until each pair has a verdict or the last look is made.

    After each look at a whole run, the verdicts so far are in `verdicts.json`.
    """
    info, pairs = session.info, session.pairs
    found: dict[str, Evidence] = {}
    notes: list[str] = []
    starts: dict[str, list[float]] = {pair.id: [] for pair in pairs}

    def next_look(pair: Pair, seconds: Sequence[float]) -> int | None:
        starts[pair.id] += seconds
        records = session.directory.point_records(pair)
        switching = _switching(starts[pair.id])
        found[pair.id] = evidence_of(pair, repeats_of(records), info, switching)
        notes.extend(version_differences(records))
        so_far = report(info, found.values(), notes)
        if session.whole:  # several steps would overwrite each other
            write_verdicts(session.directory, so_far)
        verdict = next(point for point in so_far.points if point.point_id == pair.id)
        session.watch(Judged(verdict=verdict))
        return verdict.next_look if needs_more(verdict) else None

    with measuring(session, lock=lock):
        run_pairs(session, next_look)
    return report(info, [found[pair.id] for pair in pairs], notes, session.directory.strays)


def _switching(starts: Sequence[float]) -> str:
    if not starts:
        return ""
    return (
        f"The arms could not be held at the same time and took turns: workers were started "
        f"{len(starts)} more times, which took {sum(starts):.0f} s outside the operations."
    )
