"""Sharding files for existing checkpoints, from their metadata alone."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.inventory import StoredCheckpoint, read_checkpoint

_LAST: Final = frozenset(
    {"tensor", "tensor_transpose", "tensor_sequence", "tp", "mp", "model", "autoregressive"}
)
"""Mesh axes that shard the last dimension of an array."""

_NONE: Final = frozenset({"data", "dp", "replica", "replicas", "batch", "dcn", "slice"})
"""Mesh axes over which arrays are replicated; any other axis shards the first dimension."""


def plan_shardings(path: str, mesh: Mapping[str, int]) -> tuple[dict[str, Any], StoredCheckpoint]:
    """Returns the content of a sharding file for the checkpoint at a path, and the checkpoint.

    Arrays of one dimension, and axes that do not divide their dimension evenly, are replicated. On
    a mesh of one axis this is what Orbax's own tool does, with its strategy `fsdp` for an axis
    `fsdp`, and `tp_inner` for `tp`.

    Raises:
        UserError: There is no checkpoint, or it is not whole, or Orbax v1 does not load it.
    """
    stored = read_checkpoint(path)
    stored.check()
    described = {"shape": list(mesh.values()), "axes": list(mesh)}
    content = {}
    for array in stored.arrays:
        if array.zarr is None or array.is_scalar:
            continue
        shape = array.zarr.shape
        # The last dimension of the data of a random key is the key, which is not split.
        spec = [*_partition(shape[:-1], mesh), None] if array.is_random_key else None
        content[array.name] = {
            "shape": list(shape),
            "dtype": array.zarr.dtype,
            "sharding": {"mesh": described, "spec": spec or _partition(shape, mesh)},
        }
    return content, stored


def _partition(shape: Sequence[int], mesh: Mapping[str, int]) -> list[Any]:
    taken: list[list[str]] = [[] for _ in shape]
    if len(shape) > 1:
        rest = list(shape)
        for axis, size in mesh.items():
            dimension = -1 if axis in _LAST else 0
            if axis not in _NONE and size > 0 and rest[dimension] % size == 0:
                rest[dimension] //= size
                taken[dimension].append(axis)
    return [axes[0] if len(axes) == 1 else axes or None for axes in taken]
