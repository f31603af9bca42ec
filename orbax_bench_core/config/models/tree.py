"""Arrays of model presets: dimensions, shardings by mesh axis, scaled widths, train states."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Final, Union

from orbax_bench_core.config.checkpoint import Optimizer, ShardingEntry

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

_GRAIN: Final = 64
"""Widths are multiples of it where the full width is, so that small meshes divide them evenly."""


def most_parts(dimension: str, mesh: MeshAxes) -> int:
    """Returns into how many parts a mesh cuts a dimension if no other dimension takes its axes."""
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
    return [(name, size) for _, name, size in sorted(found, key=lambda entry: entry[0])]


def _entry(names: tuple[str, ...]) -> ShardingEntry:
    if len(names) == 1:
        return names[0]
    return names or None


@dataclasses.dataclass(frozen=True)
class Array:
    """One array of a model.

    Attributes:
        shape: In elements.
        axes: What each dimension is, a key of `RULES`; None for one never sharded.
        group: The group whose dtype it has, `params` or `optimizer`, or a dtype outright.
    """

    shape: tuple[int, ...]
    axes: tuple[str | None, ...]
    group: str = "params"


Tree = Mapping[str, Union[Array, "Tree"]]


@dataclasses.dataclass(frozen=True)
class Widths:
    """Shrinks the widths of a model.

    Attributes:
        scale: Factor, more than 0 and at most 1.
        mesh: The mesh that is to divide them.
    """

    scale: float
    mesh: MeshAxes

    def of(self, full: int, axis: str) -> int:
        """Returns a width at this scale, in elements."""
        parts = most_parts(axis, self.mesh)
        multiple = math.lcm(_GRAIN, parts if full % parts == 0 else 1)
        return min(full, math.ceil(full * self.scale / multiple) * multiple)

    def of_head(self, full: int) -> int:
        """Returns the width of one attention head; rotary embeddings need an even one."""
        return min(full, math.ceil(full * self.scale / 2) * 2)


def mapped(tree: Tree, group: str) -> Tree:
    """Returns a tree of the same arrays in another group, as an optimizer keeps beside them."""
    return {
        name: dataclasses.replace(node, group=group)
        if isinstance(node, Array)
        else mapped(node, group)
        for name, node in tree.items()
    }


_COUNT: Final = Array((), (), "int32")


def train_state(params: Tree, optimizer: Optimizer) -> Tree:
    """Returns what is saved: the parameters, and with an optimizer the whole train state.

    `adamw` has two moments of each parameter, `sgd` one trace, `none` nothing.
    """
    if optimizer == "none":
        return {"params": params}
    moments = mapped(params, "optimizer")
    chain: dict[str, Tree]
    if optimizer == "adamw":
        # ScaleByAdamState, the empty state of the weight decay, ScaleByScheduleState.
        chain = {"0": {"count": _COUNT, "mu": moments, "nu": moments}, "2": {"count": _COUNT}}
    else:
        # TraceState, ScaleByScheduleState.
        chain = {"0": {"trace": moments}, "1": {"count": _COUNT}}
    return {"step": _COUNT, "params": params, "opt_state": chain}
