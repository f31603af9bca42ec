"""A/A tests: the gate's verdicts on runs whose arms are identical."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orbax_bench_core.analysis.verdicts import PointVerdict, judge_point
from orbax_bench_core.baselines import FoundRun
from orbax_bench_core.config import ARMS, GateConfig
from orbax_bench_core.document import count
from orbax_bench_core.files import ResultModel
from orbax_bench_core.gate import Word, together
from orbax_bench_core.records import PairedTimes, Record, repeats_of
from orbax_bench_core.sweep import Pair


class AaTest(ResultModel):
    """One verdict on arms that are the same.

    Attributes:
        run_id: The run.
        place: Where it is.
        point: Name of the point; of all of them where the suite is one family.
        word: What the gate said.
        alpha: Probability of a REGRESSION that it may have.
        operations: Operations per arm that it looked at, of the primary one with most.
        ratio: Largest ratio of a primary operation.
        p_value: Probability of arms as far apart as these, either way, when they are the same: the
            gate's test at no tolerance over all blocks, times the primary operations. The gate's
            own tolerance hides an offset of some percent; this does not. None where unknown.
    """

    run_id: str
    place: str
    point: str
    word: Word
    alpha: float
    operations: int
    ratio: float | None
    p_value: float | None = None

    @property
    def differs(self) -> bool:
        """Whether arms that are the same are told apart at no tolerance."""
        return self.p_value is not None and self.p_value < self.alpha


def aa_tests(run: FoundRun, pairs: Iterable[Sequence[Record]]) -> list[AaTest]:
    """Judges the pairs of a run whose arms are the same.

    Pairs of one run are tests of their own, as the order of the arms is drawn for each. Where all
    pairs of a suite share alpha, they are one test.
    """
    if run.info is None:
        return []
    judged = [
        (verdict, at_no_tolerance(PairedTimes.of(repeats), run.gate))
        for records in pairs
        if records and isinstance(pair := records[0].point, Pair) and pair.identical
        for repeats in [list(repeats_of(records))]
        for verdict in [judge_point(pair, repeats, run.info)]
        if _looked(verdict)
    ]
    if run.gate.family == "suite" and judged:
        known = [p_value for _, p_value in judged if p_value is not None]
        shared = min(1.0, len(known) * min(known)) if known else None
        name = count(len(judged), "point")
        return [_test(run, name, [verdict for verdict, _ in judged], shared)]
    return [_test(run, verdict.point, [verdict], p_value) for verdict, p_value in judged]


def at_no_tolerance(paired: PairedTimes, gate: GateConfig) -> float | None:
    """Returns the probability of arms as far apart as these if they are the same; None if unknown.

    One look at all blocks, both ways, with the level shared among the primary operations.
    """
    from orbax_bench_core.gate import judge

    operations = max((table.size for table in paired.times.values()), default=0) // len(ARMS)
    if not operations:
        return None
    exact = {"tolerance": 0.0, "min_effect_s": 0.0, "metrics": {}, "looks": (operations,)}
    rule = gate.model_copy(update=exact)
    found = [
        verdict.p_regression
        for labels in (paired.labels, ~paired.labels)
        for judged in [judge(paired.times, labels, rule)]
        for name, verdict in judged.operations.items()
        if name in judged.primary and verdict.p_regression is not None
    ]
    return min(1.0, len(found) * min(found)) if found else None


def _looked(verdict: PointVerdict) -> bool:
    return any(
        operation.primary and operation.verdict.look is not None for operation in verdict.operations
    )


def _test(
    run: FoundRun, name: str, verdicts: Sequence[PointVerdict], p_value: float | None
) -> AaTest:
    primary = [
        operation.verdict
        for verdict in verdicts
        for operation in verdict.operations
        if operation.primary
    ]
    ratios = [verdict.ratio for verdict in primary if verdict.ratio is not None]
    return AaTest(
        run_id=run.run_id,
        place=run.place,
        point=name,
        word=together([verdict.word for verdict in verdicts]),
        alpha=run.gate.alpha,
        operations=max(verdict.operations for verdict in primary),
        ratio=max(ratios, default=None),
        p_value=p_value,
    )
