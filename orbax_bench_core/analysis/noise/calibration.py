"""A/A tests: the gate's verdicts on runs whose arms are identical."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orbax_bench_core.analysis.verdicts import PointVerdict, judge_point, together
from orbax_bench_core.baselines import FoundRun
from orbax_bench_core.document import count
from orbax_bench_core.gate import Word
from orbax_bench_core.records import Record, ResultModel, repeats_of
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
    """

    run_id: str
    place: str
    point: str
    word: Word
    alpha: float
    operations: int
    ratio: float | None


def aa_tests(run: FoundRun, pairs: Iterable[Sequence[Record]]) -> list[AaTest]:
    """Judges the pairs of a run whose arms are the same.

    Pairs of one run are tests of their own, as the order of the arms is drawn for each. Where all
    pairs of a suite share alpha, they are one test.
    """
    if run.info is None:
        return []
    judged = [
        verdict
        for records in pairs
        if records and isinstance(pair := records[0].point, Pair) and pair.identical
        for verdict in [judge_point(pair, repeats_of(records), run.info)]
        if _looked(verdict)
    ]
    if run.gate.family == "suite" and judged:
        return [_test(run, count(len(judged), "point"), judged)]
    return [_test(run, verdict.point, [verdict]) for verdict in judged]


def _looked(verdict: PointVerdict) -> bool:
    return any(
        operation.primary and operation.verdict.look is not None for operation in verdict.operations
    )


def _test(run: FoundRun, name: str, verdicts: Sequence[PointVerdict]) -> AaTest:
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
    )
