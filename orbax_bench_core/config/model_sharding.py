"""Shardings of model presets: the mesh axes that cut each kind of dimension."""

from collections.abc import Sequence
from typing import Final

from orbax_bench_core.config.spec import ShardingEntry

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


def partition(
    axes: Sequence[str | None], full: Sequence[int], shape: Sequence[int], mesh: MeshAxes
) -> tuple[ShardingEntry, ...] | None:
    """Returns the sharding of an array, one entry per dimension; None for one that is replicated.

    A mesh axis that does not divide its dimension evenly, at full size and as it is, is left out:
    the array is replicated over it.

    Args:
        axes: What each dimension of the array is, such as `embed`; None for one that has no rule.
        full: Shape of the array in the model at full size.
        shape: Shape of the array as the suite has it, scaled.
        mesh: Axes of the mesh, with their sizes.
    """
    used: set[str] = set()
    entries: dict[int, tuple[str, ...]] = {}
    for kind in RULES:
        for dimension in (index for index, axis in enumerate(axes) if axis == kind):
            taken: list[str] = []
            parts = 1
            for name, size in sharding_axes(kind, mesh):
                divided = parts * size
                if name in used or full[dimension] % divided or shape[dimension] % divided:
                    continue
                taken.append(name)
                used.add(name)
                parts = divided
            entries[dimension] = tuple(taken)
    if not used:
        return None
    cuts = (entries.get(dimension, ()) for dimension in range(len(axes)))
    return tuple(cut[0] if len(cut) == 1 else cut or None for cut in cuts)


def sharding_axes(dimension: str, mesh: MeshAxes) -> list[tuple[str, int]]:
    """Returns the mesh axes that shard a dimension, with their sizes, in the order of the rule."""
    rule = RULES[dimension]
    found = [
        (rule.index(canonical), name, size)
        for name, size in mesh
        if size > 1 and (canonical := SYNONYMS.get(name, name)) in rule
    ]
    return [(name, size) for _, name, size in sorted(found, key=lambda entry: entry[0])]
