"""Arrays of model presets: trees of them, their widths at a scale, and the train state."""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Final, Union

from orbax_bench_core.config.checkpoint import Optimizer
from orbax_bench_core.config.model_sharding import MeshAxes, sharding_axes

_GRAIN: Final = 64
"""Widths are multiples of it where the full width is, so that small meshes divide them evenly."""


@dataclasses.dataclass(frozen=True)
class Array:
    """One array of a model; `axes` says what each dimension is, None for one never sharded."""

    shape: tuple[int, ...]
    axes: tuple[str | None, ...]
    group: str = "params"  # or `optimizer`, which says its dtype; it may be a dtype outright


Tree = Mapping[str, Union[Array, "Tree"]]


@dataclasses.dataclass(frozen=True)
class Widths:
    """Shrinks the widths of a model by a factor, for a mesh that is to divide them."""

    scale: float
    mesh: MeshAxes

    def of(self, full: int, axis: str) -> int:
        """Returns a width at this scale, in elements."""
        # Into so many parts a mesh cuts it if no other dimension takes its axes.
        parts = math.prod(size for _, size in sharding_axes(axis, self.mesh))
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


def unstacked(tree: Tree) -> Tree:
    """Returns a tree whose `layers` are subtrees of one layer each, as MaxText's without scan."""
    found: dict[str, Array | Tree] = {}
    for name, node in tree.items():
        if isinstance(node, Array):
            found[name] = node
        elif name == "layers":
            count = next(each.shape[each.axes.index(name)] for each in _arrays(node))
            found |= {f"layers_{index}": _one_layer(node) for index in range(count)}
        else:
            found[name] = unstacked(node)
    return found


def _arrays(tree: Tree) -> Iterator[Array]:
    for node in tree.values():
        yield from [node] if isinstance(node, Array) else _arrays(node)


def _one_layer(tree: Tree) -> Tree:
    """Returns the tree of one layer, its arrays without the dimension that counts layers."""
    found: dict[str, Array | Tree] = {}
    for name, node in tree.items():
        if isinstance(node, Array):
            at = node.axes.index("layers")
            shape, axes = ((*each[:at], *each[at + 1 :]) for each in (node.shape, node.axes))
            found[name] = dataclasses.replace(node, shape=shape, axes=axes)
        else:
            found[name] = _one_layer(node)
    return found


def train_state(params: Tree, optimizer: Optimizer) -> Tree:
    """Returns the tree to save: the parameters, and with an optimizer the whole train state."""
    if optimizer == "none":
        return {"params": params}
    count = Array((), (), "int32")
    moments = mapped(params, "optimizer")
    chain: dict[str, Tree]
    if optimizer == "adamw":
        # ScaleByAdamState, the empty state of the weight decay, ScaleByScheduleState.
        chain = {"0": {"count": count, "mu": moments, "nu": moments}, "2": {"count": count}}
    else:
        # TraceState, ScaleByScheduleState.
        chain = {"0": {"trace": moments}, "1": {"count": count}}
    return {"step": count, "params": params, "opt_state": chain}
