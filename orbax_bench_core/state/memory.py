"""How much memory the arrays of this process may still take."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import psutil
from jax.experimental import multihost_utils


def available_bytes() -> int:
    """Returns the free bytes of the memory that holds arrays: of the local devices together.

    CPU devices share the host's memory. An accelerator that reports no statistics counts as the
    host does.
    """
    free = [_free(device.memory_stats()) for device in jax.local_devices()]
    known = [count for count in free if count is not None]
    return sum(known) if known else int(psutil.virtual_memory().available)


def agreed_bytes(count: int) -> int:
    """Returns what process 0 gave, to the MiB, so that all processes take the same decisions.

    Args:
        count: Bytes, which may differ between the processes; every process must call.
    """
    if jax.process_count() == 1:
        return count
    return int(multihost_utils.broadcast_one_to_all(np.uint32(count >> 20))) << 20


def held_bytes(tree: Any) -> int:
    """Returns the bytes that the arrays of a tree take on this process's devices.

    Args:
        tree: Any pytree; replicas count as often as they are held here.
    """
    return sum(
        shard.data.nbytes
        for leaf in jax.tree.leaves(tree)
        if isinstance(leaf, jax.Array)
        for shard in leaf.addressable_shards
    )


def _free(stats: dict[str, int] | None) -> int | None:
    if not stats or "bytes_limit" not in stats:
        return None
    return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
