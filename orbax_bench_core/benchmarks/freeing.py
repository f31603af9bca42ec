"""Giving the memory of a tree back."""

from __future__ import annotations

from typing import Any


def delete(tree: Any) -> None:
    """Frees the arrays of a tree at once, wherever else it is referred to.

    Args:
        tree: Any pytree. The checkpoint data of a repeat is made again for the next one.
    """
    import jax

    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, jax.Array) and not leaf.is_deleted():
            leaf.delete()


def delete_if_scarce(tree: Any) -> None:
    """Frees the arrays of a tree if a second copy of them would not fit.

    Args:
        tree: Any pytree. Every process must call: all free theirs or none does, because making the
            checkpoint data again takes them all.
    """
    from orbax_bench_core.state.memory import agreed_bytes, available_bytes, held_bytes

    if agreed_bytes(held_bytes(tree)) > agreed_bytes(available_bytes()):
        delete(tree)
