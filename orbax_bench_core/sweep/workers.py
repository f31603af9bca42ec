"""Needs of points: all that tells the worker process of one from that of another."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from orbax_bench_core.config import HostMemory
from orbax_bench_core.sweep.point import SweepPoint

_VARIABLE: Final = "GLIBC_TUNABLES"
_TUNABLES: Final[Mapping[HostMemory, str]] = MappingProxyType(
    {
        "reused": (
            "glibc.malloc.mmap_threshold=4294967295:"
            "glibc.malloc.trim_threshold=9999999999:"
            "glibc.malloc.arena_max=1"
        ),
        "fresh": "glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold=0",
    }
)


class Placement(NamedTuple):
    """All that tells the process of a point from that of another; equal ones share a worker."""

    num_devices: int  # devices over all processes
    processes: int  # host processes that JAX joins
    environment: str  # name of the environment; empty for the command's own
    host_memory: HostMemory  # what the allocator does with freed memory
    x64: bool  # whether JAX has 64-bit types


def placement(point: SweepPoint) -> Placement:
    """Returns a point's needs of its workers; nothing else of it may decide about a process."""
    return Placement(
        num_devices=point.num_devices or point.processes,
        processes=point.processes,
        environment="" if point.environment is None else point.environment.name,
        host_memory=point.conditions.host_memory,
        x64=point.conditions.x64,
    )


def allocator_settings(host_memory: HostMemory, given: str = "") -> dict[str, str]:
    """Returns the environment that makes glibc treat freed memory as `host_memory` says.

    `reused` keeps it in the heap, `fresh` gives it back at once (anything above 128 KiB is mapped
    again each time), `default` sets nothing. Virtual machines that back memory lazily give fresh
    pages at under 1 GB/s, against 20 GB/s for memory that is used again, so a load into fresh
    memory measures the hypervisor. A C library other than glibc ignores these settings.
    """
    tunables = _TUNABLES.get(host_memory)
    return {} if tunables is None else {_VARIABLE: ":".join(filter(None, [given, tunables]))}


def host_memory_of(environment: Mapping[str, str]) -> HostMemory:
    """Describes the allocator's use of freed memory in a process with this environment."""
    tunables = environment.get(_VARIABLE, "")
    return next((word for word, own in _TUNABLES.items() if tunables.endswith(own)), "default")
