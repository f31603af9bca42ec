"""Share of the limit: the time of each operation against the probes that bound it.

All times are for the same bytes, uncompressed: those of the operation, at the speed that a probe
reached. A share of 100 % says that Orbax adds nothing; more says that it moves fewer bytes than the
probe, because data compress well, or more of them at once.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from orbax_bench_core.analysis.summary import ExtraColumns, MetricSummary, RunSummary
from orbax_bench_core.limits.model import HostLimits, Limits, ProbeName
from orbax_bench_core.limits.probes import PROBES
from orbax_bench_core.measure import BYTES, PAGE_FAULTS
from orbax_bench_core.pages import percent
from orbax_bench_core.sweep import SweepPoint

_HEADINGS: Final = ("limit", "of limit", "vs TensorStore")

_LEGEND: Final = (
    "Limit: what the machine must do at least for the same bytes, and its share of the time; "
    "over 100 % moves fewer bytes, as data compress. vs TensorStore: time over that of writing or "
    "reading the same arrays without Orbax."
)
_DOMINATES: Final = 0.5
_SPREADS: Final = 3
_NOTHING: Final = "–"


_Kind = Literal["save", "load"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LimitShare:
    """A probe's seconds for the bytes of an operation, and their share of its median time."""

    probe: ProbeName
    limit_s: float
    share: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OperationLimits:
    """Limits of one operation, and how near it comes to them."""

    # of all that the machine must do for the operation, what takes longest
    bound: LimitShare
    # the operation's time over that of raw TensorStore, a ratio; None when that was not measured,
    # or with another `host_memory` than the operation
    overhead: float | None
    first_touch: str  # a sentence where fresh memory dominates a load; empty elsewhere


def operation_limits(
    summary: RunSummary, points: Iterable[SweepPoint], limits: Limits
) -> dict[tuple[str, str], OperationLimits]:
    """Compares every save and load that states its bytes with the limits of its storage.

    Args:
        summary: The run.
        points: Points whose storage the limits are of.
        limits: What this machine and storage can do.

    Returns:
        By id of the point and operation; only operations that state their bytes.
    """
    by_id = {point.id: point for point in points}
    medians = {
        (metric.point_id, metric.operation, metric.metric): metric.median
        for metric in summary.metrics
    }
    found = {}
    for operation in summary.operations:
        key = (operation.time.point_id, operation.time.operation)
        num_bytes = medians.get((*key, BYTES))
        if key[0] not in by_id or num_bytes is None:
            continue
        faults = medians.get((*key, PAGE_FAULTS))
        compared = _compared(operation.time, by_id[key[0]], limits, num_bytes, faults)
        if compared is not None:
            found[key] = compared
    return found


def _compared(
    time: MetricSummary,
    point: SweepPoint,
    limits: Limits,
    num_bytes: float,
    page_faults: float | None,
) -> OperationLimits | None:
    kind = _kind(time.operation)
    if kind is None or not time.median:
        return None
    raw = next(_probes(kind, point, limits.path, "tensorstore"))
    files = _probes(kind, point, limits.path, "files")
    # An object store has no files to read and write, so TensorStore is what measures it.
    storage = [probe for probe in files if limits.seconds(probe, 1) is not None] or [raw]
    others = _probes(kind, point, limits.path, "memory", "devices")
    moved = dict.fromkeys((*storage, *others), num_bytes)
    # Not what the operation moves, but what of it is memory that was never touched before.
    moved["first_touch"] = _touched_bytes(kind, point, limits, num_bytes, page_faults)
    shares = [
        LimitShare(probe=probe, limit_s=limit_s, share=limit_s / time.median)
        for probe, count in moved.items()
        if count and (limit_s := limits.seconds(probe, count)) is not None
    ]
    if not shares:
        return None
    raw_s = limits.seconds(raw, num_bytes)
    # With another allocator the two differ by more than Orbax.
    same_memory = point.conditions.host_memory == limits.surroundings.host_memory
    return OperationLimits(
        bound=max(shares, key=lambda share: share.limit_s),
        overhead=time.median / raw_s if raw_s and same_memory else None,
        first_touch=_first_touch_sentence(kind, point, shares, limits),
    )


def unasked(points: Iterable[SweepPoint], path: str) -> list[ProbeName]:
    """Returns the probes of TensorStore that no operation of these points is compared with."""
    # The others are always of use: a plan takes the speed of files from any run.
    kinds: tuple[_Kind, ...] = ("save", "load")
    asked = {
        name
        for point in points
        for kind in kinds
        for name in _probes(kind, point, path, "tensorstore")
    }
    raw = (name for name, probe in PROBES.items() if probe.medium == "tensorstore")
    return [name for name in raw if name not in asked]


def limit_columns(
    found: Mapping[tuple[str, str], OperationLimits], *, age: str = ""
) -> ExtraColumns:
    """Returns the columns of limits for tables of operations; none if none were measured."""
    if not found:
        return ExtraColumns()
    return ExtraColumns(
        headings=_HEADINGS,
        cells={key: _cells(limits) for key, limits in found.items()},
        notes={key: limits.first_touch for key, limits in found.items() if limits.first_touch},
        legend=" ".join(filter(None, (_LEGEND, age))),
    )


def with_hosts(columns: ExtraColumns, found: HostLimits | None) -> ExtraColumns:
    """Returns columns whose legend also says how far the hosts of a run are apart."""
    if found is None or len(found.hosts) < 2:
        return columns
    spreads = []
    for name, probe in PROBES.items():
        speeds = {
            host: result.gib_per_s
            for host, limits in found.hosts.items()
            for result in limits.probes
            if result.name == name and result.gib_per_s is not None
        }
        if len(speeds) > 1:
            slowest = min(speeds, key=speeds.__getitem__)
            low, high = speeds[slowest], max(speeds.values())
            where = _host_name(slowest, found.hosts[slowest])
            said = f"{probe.title} {low:.3g} to {high:.3g} GiB/s, slowest {where}"
            spreads.append((low / high, said))
    if not spreads:
        return columns
    spreads.sort(key=lambda spread: spread[0])
    said = "; ".join(line for _, line in spreads[:_SPREADS])
    sentence = f"Limits of {len(found.hosts)} hosts, each on its own: {said}."
    return dataclasses.replace(columns, legend=" ".join(filter(None, [columns.legend, sentence])))


def _host_name(index: int, limits: Limits) -> str:
    host = limits.provenance.get("host")
    name = host.get("name", "") if isinstance(host, Mapping) else ""
    return f"host {index} ({name})" if name else f"host {index}"


def _cells(found: OperationLimits) -> tuple[str, ...]:
    overhead = _NOTHING if found.overhead is None else f"{found.overhead:.2f}x"
    return (PROBES[found.bound.probe].title, percent(found.bound.share), overhead)


def _kind(operation: str) -> _Kind | None:
    if operation.startswith("save"):
        return "save"
    return "load" if operation.startswith(("load", "restore")) else None


def _probes(kind: _Kind, point: SweepPoint, path: str, *media: str) -> Iterator[ProbeName]:
    """Yields the probes of some media for what an operation of a point must do."""
    is_cold = "://" in path or point.conditions.cache == "cold"
    compressed = bool(point.options.get("use_compression", True))
    for name, probe in PROBES.items():
        if (
            probe.medium in media
            and probe.operation == kind
            and probe.cache in (None, "cold" if is_cold else "warm")
            and probe.compressed in (None, compressed)
        ):
            yield name


def _touched_bytes(
    kind: _Kind, point: SweepPoint, limits: Limits, num_bytes: float, page_faults: float | None
) -> float:
    """Returns the bytes of memory that an operation touches for the first time."""
    # Page faults count them, except that one may bring a huge page. An allocator that gives all
    # memory back leaves a load at least its result to touch.
    host_memory = point.conditions.host_memory
    counted = None if page_faults is None else page_faults * limits.surroundings.page_bytes
    if kind == "load" and (
        host_memory == "fresh" or (host_memory == "default" and counted is None)
    ):
        return max(num_bytes, counted or 0.0)
    return counted or 0.0


def _first_touch_sentence(
    kind: _Kind, point: SweepPoint, shares: Iterable[LimitShare], limits: Limits
) -> str:
    for share in shares:
        if share.probe == "first_touch" and share.share >= _DOMINATES:
            gib_s = limits.seconds("first_touch", 2**30)
            assert gib_s is not None
            kept = point.conditions.host_memory == "reused"
            advice = "" if kept else "; `host_memory: reused` keeps most of it out"
            return (
                f"First touch of fresh memory, at {1 / gib_s:.2g} GiB/s on this machine, accounts "
                f"for about {percent(min(share.share, 1))} of this {kind}{advice}."
            )
    return ""
