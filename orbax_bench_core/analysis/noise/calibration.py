"""Calibration of a place: false-positive rate of the gate, noise, and the power at that noise."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Final

from orbax_bench_core.analysis.noise.measure import from_records
from orbax_bench_core.analysis.noise.passport import Noise, Passport
from orbax_bench_core.analysis.verdicts import PointVerdict, judge_point
from orbax_bench_core.baselines import FoundRun, find_runs
from orbax_bench_core.config import ARMS, GateConfig
from orbax_bench_core.files import ResultModel
from orbax_bench_core.gate import Chances, Word, together
from orbax_bench_core.pages import count
from orbax_bench_core.records import PairedTimes, Record, repeats_of
from orbax_bench_core.sweep import Pair


class AaTest(ResultModel):
    """One verdict on arms that are the same."""

    run_id: str
    place: str  # where it is
    point: str  # name of the point; of all of them where the suite is one family
    word: Word  # what the gate said
    alpha: float  # level of the test at no tolerance
    bound: float  # probability of a REGRESSION that it may have, by times, stalls or failures
    operations: int  # operations per arm that it looked at, of the primary one with most
    ratio: float | None  # largest ratio of a primary operation
    # probability of arms as far apart as these, either way, when they are the same: the gate's test
    # at no tolerance over all blocks, times the primary operations. The gate's own tolerance hides
    # an offset of some percent; this does not. None where unknown.
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
        if any(each.primary and each.verdict.look is not None for each in verdict.operations)
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

    Bonferroni over operations and directions: the smallest of n p-values, n times.

    Args:
        paired: Times of both arms, by blocks.
        gate: Rules, of which tolerance, floor and looks are replaced.
    """
    from orbax_bench_core.gate import judge

    operations = max((table.size for table in paired.times.values()), default=0) // len(ARMS)
    if not operations:
        return None
    exact = {"tolerance": 0.0, "min_effect_s": 0.0, "metrics": {}, "looks": (operations,)}
    rule = gate.model_copy(update=exact)
    found = [
        verdict.p_regression
        # With the arms changed round the same test finds a baseline that is the slower one.
        for labels in (paired.labels, ~paired.labels)
        for judged in [judge(paired.times, labels, rule)]
        for name, verdict in judged.operations.items()
        if name in judged.primary and verdict.p_regression is not None
    ]
    return min(1.0, len(found) * min(found)) if found else None


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
        bound=run.gate.false_alarms,
        operations=max(verdict.operations for verdict in primary),
        ratio=max(ratios, default=None),
        p_value=p_value,
    )


SLOW_DOWNS: Final = (0.0, 0.05, 0.1, 0.2, 0.5)
"""True slow-downs of the table of power."""


def chances_at(noise: Noise, gate: GateConfig) -> dict[float, Chances]:
    """Returns the chances of each word for the true slow-downs of the table of power.

    Args:
        noise: Noise of one operation.
        gate: The rules by which it is judged.

    Returns:
        Chances by true slow-down, as a share: 0.1 is 10 % slower.
    """
    from orbax_bench_core.gate import chances_of, spread_over_processes

    found = chances_of(
        noise.sigma,
        gate.rule(noise.operation),
        SLOW_DOWNS,
        tau=spread_over_processes(gate.blocks_per_process),
        first_pass=gate.fewest_of_pass(noise.repeat_s),
    )
    return dict(zip(SLOW_DOWNS, found, strict=True))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Calibration:
    """A/A calibration of a place."""

    tests: tuple[AaTest, ...]  # one verdict per pair whose arms are the same
    passport: Passport  # how noisy operations are there
    # files among the records that are no records of their run, a line each
    left_out: tuple[str, ...] = ()
    gate: GateConfig = dataclasses.field(default_factory=GateConfig)  # rules of the runs

    @property
    def power(self) -> list[dict[str, Any]]:
        """Chances of each word by operation and true slow-down, at the noise of the passport."""
        return [
            {
                "operation": noise.operation,
                "storage": noise.storage,
                "cpu": noise.cpu,
                "size": noise.size,
                "sigma": noise.sigma,
                "slow_down": slow_down,
                "REGRESSION": found.regression,
                "PASS": found.passes,
                "INCONCLUSIVE": found.open,
            }
            for noise in self.passport.noise
            for slow_down, found in chances_at(noise, self.gate).items()
        ]

    @property
    def rejected(self) -> int:
        """Number of the tests that said REGRESSION."""
        return sum(test.word == "REGRESSION" for test in self.tests)


def calibration_of(places: Sequence[str]) -> Calibration:
    """Reads A/A runs, and others for their noise.

    Args:
        places: Run directories, registries or folders of them; empty texts are ignored.

    Raises:
        UserError: A place has no run, or one that cannot be read.
    """
    tests, records = [], []
    left_out: list[str] = []
    gates: dict[str, GateConfig] = {}
    for run in find_runs([place for place in places if place]):
        pairs = list(run.read())
        tests += aa_tests(run, pairs)
        records += [record for pair in pairs for record in pair]
        left_out += run.left_out
        gates[run.gate.fingerprint] = run.gate
    return Calibration(
        tests=tuple(tests),
        passport=from_records(records),
        left_out=tuple(left_out),
        # Runs of several suites have no rules in common but the default ones.
        gate=next(iter(gates.values())) if len(gates) == 1 else GateConfig(),
    )
