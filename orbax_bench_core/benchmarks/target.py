"""What to load: a tree without its values."""

from __future__ import annotations

from typing import Any


def load_target(tree: Any) -> Any:
    """Returns shape, dtype and sharding of each array of a tree, and the type of each scalar.

    Args:
        tree: What was saved; its arrays may be gone by the time of the load.
    """
    import jax

    def of(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
        return type(leaf)

    return jax.tree.map(of, tree)
