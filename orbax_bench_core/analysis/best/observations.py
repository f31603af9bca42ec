"""Observations of a choice: the value that a goal has in each repeat, by block and process."""

import contextlib
import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from orbax_bench_core import measure
from orbax_bench_core.analysis.best.model import Goal
from orbax_bench_core.analysis.best.orbax_code import attributes
from orbax_bench_core.analysis.page_cache import cache_states
from orbax_bench_core.errors import UserError, did_you_mean
from orbax_bench_core.measure import RESIDENT_SHARE, TOLERATED_SHARE
from orbax_bench_core.reasons import NO_REASON, Reasons, because
from orbax_bench_core.records import OverlapFinder, Repeat, Verified, weakest
from orbax_bench_core.sweep import SweepPoint, short_name

BLOCKING: Final = "blocking"
SAVE: Final = "save"
LOAD: Final = "load"
BYTES: Final = "bytes"
MEMORY: Final = "memory"

MEASURES: Final = (BLOCKING, SAVE, LOAD, BYTES, MEMORY)
"""Measures that every sweep is ranked by, as far as its repeats have them."""

FRONT: Final = (SAVE, LOAD, BYTES)
"""Measures of the Pareto front."""

OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    BLOCKING: ("save_blocking",),
    SAVE: ("save",),
    LOAD: ("load", "restore"),
}
"""Operations that a measure is the time of; the first that a repeat has."""

_OF_LOADS: Final = frozenset(("load", "restore", "first_step"))
_OF_SAVES: Final = re.compile(r"save\w*|blocking|bytes|step_p99|step_max|steps_\w+|train")
_LOADS_ONLY: Final = frozenset(
    (
        "restore_devices",
        "use_load_and_broadcast",
        "restore_concurrent_gb",
        "primary_replica_id",
        "broadcast_memory_limit_bytes",
        "broadcast_memory_scaling_factor",
        "mmap",
        "load_async",
    )
)
_SAVES_ONLY: Final = frozenset(
    (
        "async_enabled",
        "enable_async_checkpointing",
        "enable_async_save",
        "save_concurrent_gb",
        "device_host_concurrent_gb",
        "save_device_host_concurrent_gb",
        "background_keys",
        "regulator_max_gb",
        "expected_surge_gb",
        "deepcopy_host_arrays",
        "host_arrays",
        "create_directories_asynchronously",
        "enable_pinned_host_transfer",
        "enable_post_merge_validation",
        "skip_sync_file_validations",
        "timeout_secs",
        "enable_background_delete",
    )
)

RECOVERY: Final = "recovery"
"""From a kill to the next step; only drills measure it."""

STEP_P99: Final = "step_p99"
STEP_MAX: Final = "step_max"
"""Slowest steps of a training that saves; goals beside `MEASURES`."""

_TERM: Final = re.compile(r"\s*([A-Za-z_][\w.\[\]-]*)\s*(?:=\s*([^=\s]+)\s*)?")


def parse_goal(text: str) -> Goal:
    """Reads a goal: `save`, or measures with weights such as `blocking=3,load=1`.

    A measure is one of `MEASURES`, or the name of an operation. With weights the goal is the
    weighted geometric mean: one percent of blocking time counts as three percent of a load.

    Returns:
        The goal; its weights add up to 1.

    Raises:
        UserError: It has another form, names a measure twice, or names a CPU time.
    """
    weights: dict[str, float] = {}
    for part in text.split(","):
        if (name := part.partition("=")[0].strip()).endswith(measure.OF_CPU):
            raise UserError(
                f"--goal {text!r}: {name} is a CPU time, by which `best` ranks nothing: give the "
                f"operation's time, {name.removesuffix(measure.OF_CPU)}, or compare two points by "
                "their CPU times with `ab` and gate.primary"
            )
        match, weight = _TERM.fullmatch(part), 0.0
        with contextlib.suppress(ValueError):
            weight = float(match[2] or 1) if match else 0.0
        if match is None or not 0 < weight < math.inf:
            raise UserError(
                f"--goal {text!r}: give a measure ({', '.join(MEASURES)}, or an operation), or "
                "several with weights above 0, such as blocking=3,load=1"
            )
        if match[1] in weights:
            raise UserError(f"--goal {text!r}: {match[1]} stands there twice; give it one weight")
        weights[match[1]] = weight
    total = sum(weights.values())
    return Goal(text=text, weights={name: weight / total for name, weight in weights.items()})


def goal_value(goal: Goal, values: Mapping[str, float]) -> float | None:
    """Returns the value of a goal in one repeat; None if the repeat lacks one of its measures."""
    found = [(values.get(name, 0.0), weight) for name, weight in goal.weights.items()]
    if any(value <= 0 for value, _ in found):
        return None
    if len(found) == 1:
        return found[0][0]
    return math.exp(sum(weight * math.log(value) for value, weight in found))


def acts_on(option: str, goal: Goal) -> bool:
    """Returns whether an option can change a goal: one of loads alone changes no save."""
    if option in _LOADS_ONLY:
        return not all(_OF_SAVES.fullmatch(measure) for measure in goal.weights)
    return option not in _SAVES_ONLY or not set(goal.weights) <= _OF_LOADS


def check_goal(goal: Goal, measured: frozenset[str]) -> None:
    """Refuses a goal that no repeat has measured.

    Raises:
        UserError: A measure of it is missing; the message names the nearest.
    """
    for name in goal.weights:
        if name not in measured:
            raise UserError(
                f"--goal {goal.text!r}: no repeat has measured {name!r}; "
                f"{did_you_mean(name, sorted(measured))}"
            )


_LARGEST: Final = {
    STEP_P99: (measure.STEP_P99.name, 1),
    STEP_MAX: (measure.STEP_MAX.name, 1),
    MEMORY: ("7_memory/host_peak_rss_mb", 2**20),
}
"""Measures that are the largest value of a metric, and its unit in theirs."""

Values = dict[str, dict[int, float]]
"""Values of a goal by point, then by round."""


@dataclasses.dataclass(kw_only=True)
class Observed:
    """Observations of one point.

    Attributes:
        point: The point.
        values: Values above 0 by measure or operation, then by round.
        files: Files of the checkpoint in the last round that counted them.
        failed: Why repeats failed or were skipped, by round.
        flagged: What is wrong with the times of repeats that count, by round.
        retried: Rounds that passed only when they were tried again.
        verified: What its restored values were compared with, in every repeat that counts.
        versions: Version of Orbax; empty if it is unknown.
        platform: Platform of its devices; empty if it is unknown.
        caches: States of the page cache that each load met.
        workers: Worker process of its first host, by round; empty if it is unknown.
        seconds: Seconds that each repeat took, outside its operations too, by round.
    """

    point: SweepPoint
    values: dict[str, dict[int, float]] = dataclasses.field(default_factory=dict)
    files: int | None = None
    failed: dict[int, str] = dataclasses.field(default_factory=dict)
    flagged: dict[int, Reasons] = dataclasses.field(default_factory=dict)
    retried: set[int] = dataclasses.field(default_factory=set)
    verified: list[Verified] = dataclasses.field(default_factory=list)
    version: str = ""
    platform: str = ""
    caches: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    workers: dict[int, str] = dataclasses.field(default_factory=dict)
    seconds: dict[int, float] = dataclasses.field(default_factory=dict)

    @property
    def rounds(self) -> frozenset[int]:
        """Rounds that have a value."""
        return frozenset(at for by_round in self.values.values() for at in by_round)

    @property
    def weakest(self) -> Verified:
        """What can be said of all its comparisons together."""
        return weakest(self.verified)

    def add(self, repeat: Repeat) -> None:
        """Takes one repeat."""
        if not repeat.counts:
            self.failed[repeat.index] = repeat.reason
            return
        self.seconds[repeat.index] = max(each.duration_s for each in repeat.records.values())
        self.workers[repeat.index] = repeat.records[min(repeat.records)].worker
        for operation, state in cache_states([repeat]).items():
            self.caches.setdefault(operation, set()).add(state)
        for name, value in measures_of(repeat).items():
            if value > 0:
                self.values.setdefault(name, {})[repeat.index] = value
        if flags := _flags(repeat):
            self.flagged[repeat.index] = flags
        if repeat.first_failed:
            self.retried.add(repeat.index)
        self.verified.append(repeat.verified)
        for record in repeat.records.values():
            if record.inventory is not None:
                self.files = record.inventory.file_count
            self.version = record.provenance.get("versions", {}).get("orbax-checkpoint", "")
            devices = record.provenance.get("devices")
            self.platform = devices.get("platform", "") if isinstance(devices, dict) else ""


class Observer:
    """Observer of the repeats of a suite's points; arms of comparisons are none of its business."""

    def __init__(self, points: Iterable[SweepPoint]) -> None:
        """Takes the points of the suite."""
        self._found = {point.id: Observed(point=point) for point in points}
        self._company = OverlapFinder()

    def add(self, repeat: Repeat) -> None:
        """Takes one repeat; of warm-ups and arms only whom they disturbed."""
        self._company.add(repeat)
        if not repeat.warmup and repeat.series.id in self._found:
            self._found[repeat.series.id].add(repeat)

    def not_alone(self) -> Mapping[str, int]:
        """Returns by id of the point how many of its repeats were not alone on their machine."""
        return self._company.found()

    def cases(self) -> dict[str, list[Observed]]:
        """Returns the points, those without a repeat too, by their work; see `SweepPoint.work`."""
        found: dict[tuple[str, str], list[Observed]] = {}
        for observed in self._found.values():
            point = observed.point
            found.setdefault((_title(point), point.work), []).append(observed)
        titles = [title for title, _ in found]
        return {
            title if titles.count(title) == 1 else f"{title} ({number})": observed
            for number, ((title, _), observed) in enumerate(found.items(), start=1)
        }


def measures_of(repeat: Repeat) -> dict[str, float]:
    """Returns the value of every measure and operation that a repeat has; seconds or bytes.

    Times are those of the slowest host, summed over the occurrences of an operation. Memory is the
    largest resident set of any host's process in any operation.
    """
    found: dict[str, float] = {}
    for (operation, _), value in repeat.seconds().items():
        found[operation] = found.get(operation, 0.0) + value
    for name, operations in OPERATIONS.items():
        times = [found[operation] for operation in operations if operation in found]
        if times:
            found[name] = times[0]
    inventories = [each.inventory for each in repeat.records.values() if each.inventory is not None]
    if inventories:
        found[BYTES] = float(max(inventory.total_bytes for inventory in inventories))
    for name, (metric, factor) in _LARGEST.items():
        values = [
            sample.value
            for record in repeat.records.values()
            for sample in record.samples
            if sample.metric == metric
        ]
        if values:
            found[name] = max(values) * factor
    return found


def choices(point: SweepPoint) -> dict[str, Any]:
    """Returns the choices of a point: options, storage, environment, memory of the host.

    A point lacks an option that is newer than its benchmark and that its suite does not give: it
    has the default, which is Orbax's.
    """
    environment = None if point.environment is None else point.environment.name
    return {
        **{name: each.default for name, each in attributes(point).items()},
        **point.options,
        "storage": point.storage,
        "environment": environment,
        "host_memory": point.conditions.host_memory,
    }


def _title(point: SweepPoint) -> str:
    parts = [] if point.mesh is None else [f"mesh={point.mesh.label}"]
    parts += [] if point.checkpoint.is_empty else [f"ckpt={point.checkpoint.label}"]
    parts += [f"processes={point.processes}"] if point.processes > 1 else []
    parts += ["cache=cold"] if point.conditions.cache == "cold" else []
    return f"{short_name(point.benchmark)}[{','.join(parts)}]"


def _flags(repeat: Repeat) -> Reasons:
    """Returns why the times of a repeat may not be what they claim to be."""
    flags = NO_REASON
    for name in sorted(repeat.flagged):
        flags += because("storage_trouble", name=name)
    shares = [
        share
        for by_host in repeat.values(RESIDENT_SHARE.name).values()
        for share in by_host.values()
    ]
    cache = repeat.series.point.conditions.cache
    if shares and cache == "cold" and max(shares) > TOLERATED_SHARE:
        flags += because("cached")
    if shares and cache == "warm" and min(shares) < 1 - TOLERATED_SHARE:
        flags += because("not_cached")
    return flags


def cache_of(points: Sequence[Observed], goal: Goal) -> str:
    """Returns the state of the page cache that the loads of a goal met; empty without any."""
    names = {name for measure in goal.weights for name in OPERATIONS.get(measure, (measure,))}
    states = {state for point in points for name in names for state in point.caches.get(name, ())}
    return "mixed" if len(states) > 1 else next(iter(states), "")


def processes_of(points: Sequence[Observed]) -> dict[int, int]:
    """Returns the worker processes of each round, numbered; rounds that share any have one number.

    What an option does differs from process to process, so that only rounds of different processes
    say independently of each other what the next one would see.
    """
    workers: dict[int, set[str]] = {}
    for observed in points:
        for at, worker in observed.workers.items():
            workers.setdefault(at, set()).add(worker)
    numbers: dict[str, int] = {}
    for at, present in sorted(workers.items()):
        # A round whose points had workers of two numbers makes these one: neither is independent.
        joined = {numbers[worker] for worker in present if worker in numbers}
        first = min(joined, default=at)
        if len(joined) > 1:
            numbers = {name: first if old in joined else old for name, old in numbers.items()}
        numbers.update(dict.fromkeys(present, first))
    return {at: numbers[next(iter(present))] for at, present in workers.items()}


def values_for(points: Sequence[Observed], goal: Goal) -> Values:
    """Returns the values of a goal by point and round."""
    found: Values = {}
    for observed in points:
        measured = {name: observed.values.get(name, {}) for name in goal.weights}
        with_all = set.intersection(*map(set, measured.values()))
        by_round = {
            at: goal_value(goal, {name: of[at] for name, of in measured.items()})
            for at in sorted(with_all)
        }
        found[observed.point.id] = {at: v for at, v in by_round.items() if v is not None}
    return found
