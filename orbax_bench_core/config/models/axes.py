"""Which mesh axes shard which dimensions of a model, by the names of the axes.

The rules are those for weights in MaxText's `logical_axis_rules`
(https://github.com/AI-Hypercomputer/maxtext, `configs/base.yml`), with the short names that other
code bases use for the same axes. An axis that has no rule, such as `data` or `replica`, replicates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.config.checkpoint import ShardingEntry

MeshAxes = tuple[tuple[str, int], ...]
"""Name and size of each axis of a mesh; empty without a mesh."""

_TENSOR: Final = ("tensor", "tensor_transpose", "tensor_sequence", "autoregressive")

RULES: Final[dict[str, tuple[str, ...]]] = {
    "mlp": ("fsdp_transpose", "tensor", "tensor_sequence", "autoregressive"),
    "vocab": _TENSOR,
    "heads": _TENSOR,
    "experts": ("expert",),
    "embed": ("fsdp", "fsdp_transpose", "sequence", "tensor_transpose", "context", "expert"),
    "norm": ("tensor", "tensor_transpose"),
    "layers": ("stage",),
}
"""Mesh axes that shard each kind of dimension. Within an array the kinds are served in this order,
and each mesh axis shards one dimension."""

SYNONYMS: Final[dict[str, str]] = {
    "model": "tensor",
    "tp": "tensor",
    "mp": "tensor",
    "ep": "expert",
    "sp": "sequence",
    "cp": "context",
    "pp": "stage",
    "pipeline": "stage",
}
"""Other names of mesh axes, and the name that the rules have for them."""


def most_parts(dimension: str, mesh: MeshAxes) -> int:
    """Returns into how many parts a mesh cuts a dimension if no other dimension takes its axes.

    Args:
        dimension: A key of `RULES`.
        mesh: The mesh.
    """
    return math.prod(size for _, size in _sharding_axes(dimension, mesh))


def partition(
    axes: Sequence[str | None],
    full: Sequence[int],
    shape: Sequence[int],
    mesh: MeshAxes,
) -> tuple[ShardingEntry, ...] | None:
    """Returns the sharding of an array, one entry per dimension.

    An axis that does not divide its dimension evenly, at full size and as it is, is left out: the
    array is replicated over it.

    Args:
        axes: What each dimension is, a key of `RULES` or None.
        full: Shape at full size, in elements.
        shape: Shape as it is, in elements.
        mesh: The mesh.

    Returns:
        The entries as in `ArraySpec`; None for an array that no axis shards.
    """
    used: set[str] = set()
    entries: dict[int, tuple[str, ...]] = {}
    for kind in RULES:
        for dimension in (index for index, axis in enumerate(axes) if axis == kind):
            taken: list[str] = []
            parts = 1
            for name, size in _sharding_axes(kind, mesh):
                divided = parts * size
                if name in used or full[dimension] % divided or shape[dimension] % divided:
                    continue
                taken.append(name)
                used.add(name)
                parts = divided
            entries[dimension] = tuple(taken)
    if not used:
        return None
    return tuple(_entry(entries.get(dimension, ())) for dimension in range(len(axes)))


def _sharding_axes(dimension: str, mesh: MeshAxes) -> list[tuple[str, int]]:
    """Returns the mesh axes that shard a dimension, with their sizes, in the order of the rule."""
    rule = RULES[dimension]
    found = [
        (rule.index(canonical), name, size)
        for name, size in mesh
        if size > 1 and (canonical := SYNONYMS.get(name, name)) in rule
    ]
    return [(name, size) for _, name, size in sorted(found, key=lambda one: one[0])]


def _entry(names: tuple[str, ...]) -> ShardingEntry:
    if len(names) == 1:
        return names[0]
    return names or None
