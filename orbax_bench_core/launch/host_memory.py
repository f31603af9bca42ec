"""What a worker's allocator does with memory that is freed."""

from __future__ import annotations

from orbax_bench_core.config.execution import HostMemory

_TUNABLES = {
    "reused": (
        "glibc.malloc.mmap_threshold=4294967295:"
        "glibc.malloc.trim_threshold=9999999999:"
        "glibc.malloc.arena_max=1"
    ),
    "fresh": "glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold=0",
}


def allocator_settings(host_memory: HostMemory) -> dict[str, str]:
    """Returns the environment that makes glibc treat freed memory as `host_memory` says.

    Virtual machines that back memory lazily hand out fresh pages at under 1 GB/s, against 20 GB/s
    for memory that is used again, so a load into fresh memory measures the hypervisor. A C library
    other than glibc ignores these settings.

    Args:
        host_memory: `reused` keeps it in the heap, `fresh` gives it back at once (anything above
            128 KiB is mapped anew each time), `default` sets nothing.
    """
    tunables = _TUNABLES.get(host_memory)
    return {} if tunables is None else {"GLIBC_TUNABLES": tunables}
