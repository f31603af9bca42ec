"""Whether a mesh can hold a checkpoint spec, found out without devices."""

from __future__ import annotations

import dataclasses
import math

from orbax_bench_core.config.checkpoint import ArraySpec, CheckpointConfig, leaves
from orbax_bench_core.config.mesh import MeshConfig


@dataclasses.dataclass(frozen=True, slots=True)
class ShardingConflict:
    """A leaf that a mesh cannot hold.

    Attributes:
        where: Path of the leaf inside the spec.
        message: What was asked and what would work.
    """

    where: tuple[str, ...]
    message: str


def sharding_conflict(
    checkpoint: CheckpointConfig, mesh: MeshConfig | None
) -> ShardingConflict | None:
    """Returns the first leaf of `checkpoint.spec` that `mesh` cannot hold, or None.

    Args:
        checkpoint: What is to be laid out; one without a spec fits every mesh.
        mesh: The mesh; None stands for a run without one.
    """
    for where, leaf in leaves(checkpoint.spec or {}):
        if isinstance(leaf, ArraySpec) and any(leaf.sharding or ()):
            message = _leaf_conflict(leaf, mesh)
            if message:
                return ShardingConflict(where, message)
    return None


def _leaf_conflict(leaf: ArraySpec, mesh: MeshConfig | None) -> str | None:
    if mesh is None:
        return "`sharding` needs a mesh; add `mesh_config`"
    sizes = dict(zip(mesh.mesh_axes, mesh.shape, strict=True))
    used: set[str] = set()
    for dimension, entry in enumerate(leaf.sharding or ()):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        for axis in axes:
            if axis not in sizes:
                return f"sharding axis {axis!r} is not in mesh_axes {list(mesh.mesh_axes)}"
            if axis in used:
                return f"axis {axis!r} shards two dimensions; use it once"
            used.add(axis)
        parts = math.prod(sizes[axis] for axis in axes)
        if leaf.shape[dimension] % parts:
            return (
                f"dimension {dimension} has {leaf.shape[dimension]} elements, which mesh "
                f"{mesh.label} cannot split into {parts} equal parts; use a multiple of {parts}"
            )
    return None
