"""Upper bounds of host memory, lower bounds of time, and failures that can be foretold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

from orbax_bench_core.document import num_bytes
from orbax_bench_core.plan.layout import SaveLayout
from orbax_bench_core.plan.options import StorageOptions
from orbax_bench_core.plan.reading import ReadCost

_GIB: Final = 2**30
SAVE_SLACK: Final = 10 * 2**20
"""Bytes that a save takes beside those that it writes; measured on 64 to 256 MiB."""
LOAD_SLACK: Final = 95 * 2**20
"""Bytes that a load with a limit takes beside its arrays and the limit; measured on 256 MiB."""


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryBounds:
    """Most host memory that a process takes beside what it had, in bytes.

    Attributes:
        save: While saving from memory of the host: CPU devices.
        save_accelerator: While saving from accelerators, whose arrays are copied to the host first.
        load: While loading, the loaded arrays included.
    """

    save: int
    save_accelerator: int
    load: int


def memory_bounds(layout: SaveLayout, reading: ReadCost, options: StorageOptions) -> MemoryBounds:
    """Returns the most that the process which is worst off takes.

    A save holds compressed chunks until they are written, which are at most as large as the
    arrays. A load holds the arrays of all local devices and the chunks that it reads for them; the
    limit on loading bounds the latter.
    """
    written = int(layout.host_bytes.max(initial=0))
    load = load_bound(reading, options.load_limit)
    return MemoryBounds(written + SAVE_SLACK, 2 * written + SAVE_SLACK, load)


def load_bound(reading: ReadCost, limit: int | None) -> int:
    """Returns the most bytes that a load takes on the host that is worst off.

    Args:
        reading: What the hosts read.
        limit: Most bytes in flight while loading; None sets no limit.
    """
    in_flight = max(reading.held, int(reading.most.max(initial=0)))
    bound = reading.held + in_flight + SAVE_SLACK
    return bound if limit is None else min(bound, reading.held + limit + LOAD_SLACK)


@dataclasses.dataclass(frozen=True, slots=True)
class Speeds:
    """Best speeds of the storage of one host.

    Attributes:
        write: In GiB/s, until data are on stable storage; None where nothing tells.
        read: In GiB/s, cold; None where nothing tells.
        write_source: Where that of writing is from.
        read_source: Where that of reading is from.
    """

    write: float | None = None
    read: float | None = None
    write_source: str = "given"
    read_source: str = "given"


@dataclasses.dataclass(frozen=True, slots=True)
class TimeBounds:
    """Fewest seconds of a save and a load; None where nothing tells."""

    save_s: float | None
    load_s: float | None


def time_bounds(
    layout: SaveLayout, reading: ReadCost, options: StorageOptions, speeds: Speeds
) -> TimeBounds:
    """Returns the fewest seconds: bytes of the slowest host at the best speed.

    With compression and without a measured ratio nothing is known of the bytes on storage.
    """
    ratio = options.compression_ratio if options.use_compression else 1.0

    def seconds(values: float, speed: float | None) -> float | None:
        return None if speed is None or ratio is None else values * ratio / (speed * _GIB)

    return TimeBounds(
        seconds(float(layout.host_bytes.max(initial=0)), speeds.write),
        seconds(float(reading.least.max(initial=0)), speeds.read),
    )


def foretold(layout: SaveLayout, reading: ReadCost, options: StorageOptions) -> Iterator[str]:
    """Yields what will fail, and what to do.

    Orbax raises `ValueError: Requested more bytes than we reserved space for` when one shard does
    not fit under a limit on bytes in flight: it does not wait.
    """
    largest = max(layout.arrays, key=lambda array: array.write_bytes)
    limit = options.save_limit
    if limit is not None and largest.write_bytes >= limit:
        yield (
            f"the save will fail: {largest.name} is written in parts of "
            f"{num_bytes(largest.write_bytes)}, and save_concurrent_gb allows {num_bytes(limit)}; "
            "raise it above that, or cut the array further"
        )
    name, size = reading.largest
    limit = options.load_limit
    if limit is not None and size >= limit:
        yield (
            f"the load will fail: one shard of {name} reads {num_bytes(size)} of whole chunks, and "
            f"restore_concurrent_gb allows {num_bytes(limit)}; raise it above that, or save "
            "smaller chunks"
        )
