"""What to load: a tree without its values."""

from __future__ import annotations

from typing import Any


def load_target(tree: Any) -> Any:
    """Returns shape, dtype and sharding of each array of a tree, and what stands for each scalar.

    Args:
        tree: What was saved; its arrays may be gone by the time of the load.
    """
    import jax

    from orbax_bench_core.state import orbax_api

    def of(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
        return orbax_api.scalar_target(leaf)

    return jax.tree.map(of, tree)
