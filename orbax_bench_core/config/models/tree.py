"""The words in which presets describe their arrays."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Final, Union

from orbax_bench_core.config.models.axes import MeshAxes, most_parts

_GRAIN: Final = 64
"""Widths are multiples of it where the full width is, so that small meshes divide them evenly."""


@dataclasses.dataclass(frozen=True)
class Array:
    """One array of a model.

    Attributes:
        shape: In elements.
        axes: What each dimension is, in the words of `axes.RULES`; None for one never sharded.
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
        """Returns a width at this scale, in elements.

        Args:
            full: The published width.
            axis: What the dimension is, in the words of `axes.RULES`.
        """
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
