"""Forecast of a comparison: its length and its chance of a verdict, from the noise passport."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from orbax_bench_core import sweep
from orbax_bench_core.analysis.noise.passport import Passport
from orbax_bench_core.config import ARMS, GateConfig
from orbax_bench_core.measure import OF_CPU
from orbax_bench_core.pages import percent, share, wait
from orbax_bench_core.provenance import host_provenance, storage_provenance

_BLOCK_OF_LIVES_S: Final = (10.0, 30.0)
"""Seconds of a block of four new worker processes, with arrays of some MiB, on two cores and more:
start of JAX, a warm-up and two operations each."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Forecast of the comparison of one point."""

    operation: str  # the primary operation that takes longest to judge
    sigma: float  # its noise
    operations: float  # mean number of operations per arm until a verdict or the last look
    minutes: float  # what they take, both arms together
    chance: float  # chance of a verdict by the last look
    # smallest relative slow-down that is found nine times in ten by the last look
    detectable: float


def expected(
    point: sweep.SweepEntry,
    gate: GateConfig,
    passport: Passport,
    *,
    storage: str | None = None,
    cpu: str | None = None,
) -> Expectation | None:
    """Estimates how long a comparison of a point takes if nothing has changed.

    Args:
        point: The point or pair.
        gate: The rules of the comparison.
        passport: The noise that was measured before.
        storage: Kind of storage whose noise counts; None for any.
        cpu: Model of the CPU whose noise counts; None for any.

    Returns:
        The forecast of its slowest primary operation; None if the passport knows none of them.
    """
    from orbax_bench_core.gate import plan_operations, spread_over_processes

    design = sweep.PairDesign()
    if isinstance(point, sweep.Pair):
        design = sweep.design_of(point, gate, passport=process_noise(point, gate, passport))
    entries = {
        operation: entry
        for operation in gate.primary
        if (entry := passport.entry(point, operation, storage=storage, cpu=cpu)) is not None
    }
    if not entries:
        return None
    offsets = [entry.tau.estimate for entry in entries.values() if entry.tau is not None]
    slow = max(entry.repeat_s for entry in entries.values())
    plans = plan_operations(
        {name: entry.sigma for name, entry in entries.items()},
        gate,
        per_life=design.operations_per_life,
        # Of arms in one worker its offset is no part of the ratio; what an option does there is.
        tau=max(offsets, default=0.0)
        if design.lives
        else spread_over_processes(design.blocks_per_process),
        first_pass=gate.fewest_of_pass(slow, design.operations_per_life),
    )
    slowest = max(plans, key=lambda name: (plans[name].operations, entries[name].sigma))
    seconds = entries[slowest].repeat_s
    operations = plans[slowest].operations
    return Expectation(
        operation=slowest,
        sigma=entries[slowest].sigma,
        operations=operations,
        minutes=len(ARMS) * operations * seconds / 60,
        chance=min(plan.verdict for plan in plans.values()),
        detectable=max(plan.detectable for plan in plans.values()),
    )


def process_noise(
    point: sweep.SweepEntry, gate: GateConfig, passport: Passport
) -> sweep.ProcessNoise:
    """Returns the spread between processes: the worst primary operation of a point.

    Returns:
        The largest bounds of its operations. `offset_high` is None if one in the passport lacks it.
    """
    entries = [passport.entry(point, operation) for operation in gate.primary]
    found = [entry for entry in entries if entry is not None]
    offsets = [entry.tau.high for entry in found if entry.tau is not None]
    ratios = [entry.interaction for entry in found if entry.interaction is not None]
    return sweep.ProcessNoise(
        # Where one operation is not known, nothing can be said of all.
        offset_high=max(offsets) if offsets and len(offsets) == len(found) else None,
        interaction_low=max((ratio.low for ratio in ratios), default=None),
    )


def processes_of(passport: Passport) -> sweep.ProcessNoiseOf:
    """Returns the spread between processes of any pair, on any storage, by a passport."""
    return lambda pair, gate: process_noise(pair, gate, passport)


def forecast(
    points: Sequence[sweep.SweepEntry], gate: GateConfig, passport: Passport, root: str
) -> str:
    """Estimates how long comparisons on this machine take, one line for people.

    Points that name no storage have their data in the run directory, `root`.
    """
    if of_cpu := [name for name in gate.primary if name.endswith(OF_CPU)]:
        return (
            "How long a verdict will take is unknown: the noise passport is of times, and "
            f"{', '.join(of_cpu)} decides here."
        )
    known = _expectations(points, gate, passport, root)
    if not known:
        kinds = ", ".join(sorted(set(_storage(points, root))))
        return (
            f"The noise passport knows nothing like these points on {kinds}: "
            "`orbax-bench calibrate` can take this run into it."
        )
    hardest = max(known, key=lambda expectation: expectation.operations)
    return (
        f"A verdict will probably take {hardest.operations:.0f} operations per arm and point, "
        f"{wait(_minutes(known, points))} in all; {hardest.operation} has a noise of "
        f"{share(hardest.sigma, 2)}, so slow-downs from {share(hardest.detectable, 2)} on are "
        f"found, and {percent(hardest.chance)} of such comparisons end in a verdict."
    )


def expected_minutes(
    points: Sequence[sweep.SweepEntry], gate: GateConfig, passport: Passport, root: str
) -> float | None:
    """Returns the minutes that a comparison will probably take; None if nothing is known.

    The arguments are those of `forecast`.
    """
    known = _expectations(points, gate, passport, root)
    return _minutes(known, points) if known else None


def _expectations(
    points: Sequence[sweep.SweepEntry], gate: GateConfig, passport: Passport, root: str
) -> list[Expectation]:
    cpu = host_provenance()["host"]["cpu"]
    each = [
        expected(point, gate, passport, storage=storage, cpu=cpu)
        for point, storage in zip(points, _storage(points, root), strict=True)
    ]
    return [expectation for expectation in each if expectation is not None]


def _storage(points: Sequence[sweep.SweepEntry], root: str) -> list[str]:
    return [
        storage_provenance(sweep.baseline_point(point).storage or root)["type"] for point in points
    ]


def _minutes(known: Sequence[Expectation], points: Sequence[sweep.SweepEntry]) -> float:
    # Points that the passport does not know will take about as long as those that it does.
    return sum(expectation.minutes for expectation in known) * len(points) / len(known)


def usual_minutes(
    points: Sequence[sweep.Pair], gate: GateConfig, designs: Mapping[str, sweep.PairDesign]
) -> tuple[float, float] | None:
    """Returns the fewest and the most minutes of a comparison where no passport knows its points.

    Worker processes that are started for every block take most of the time, whatever is measured.
    The first number is a verdict at the first look on a fast host, the second the last look on a
    slow one, of small checkpoints. None where a pair has no such lives: its operations decide.
    """
    found = [designs.get(point.id, sweep.PairDesign()) for point in points]
    if not found or not all(design.lives for design in found):
        return None
    fast, slow = _BLOCK_OF_LIVES_S
    first = sum(design.blocks(design.looks(gate)[0]) for design in found)
    last = sum(design.blocks(design.looks(gate)[-1]) for design in found)
    return max(1, first * fast / 60), max(1, last * slow / 60)
