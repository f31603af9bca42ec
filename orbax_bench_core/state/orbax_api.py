"""Orbax's v1 functions, whatever release is installed: 0.12.0 renamed them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbax_bench_core.state import orbax_release
from orbax_bench_core.state.errors import StateError

if TYPE_CHECKING:
    from etils import epath


def save(path: epath.Path, tree: Any) -> None:
    """Saves a tree, and returns when it is committed."""
    _function("save", "save_pytree")(path, tree)


def save_async(path: epath.Path, tree: Any) -> Any:
    """Begins to save a tree; the `result()` of what it returns waits until it is committed."""
    return _function("save_async", "save_pytree_async")(path, tree)


def replace(path: epath.Path, tree: Any) -> None:
    """Saves a tree over a checkpoint that may be there."""
    replacing = {"overwrite" if orbax_release.is_at_least("0.11.14") else "force": True}
    _function("save", "save_pytree")(path, tree, **replacing)


def load(path: epath.Path, target: Any) -> Any:
    """Loads what `save` saved.

    Args:
        path: The checkpoint.
        target: The tree with a `jax.ShapeDtypeStruct` for each array and a `scalar_target` for
            each other leaf.
    """
    return _function("load", "load_pytree")(path, target)


def scalar_target(value: Any) -> Any:
    """Returns what stands for a number or a string in the target of a load: its type."""
    # Before 0.11.20 Orbax took the type from a value.
    return type(value) if orbax_release.is_at_least("0.11.20") else type(value)()


def load_item(root: epath.Path, item: str | None, target: Any) -> Any:
    """Loads one tree of a checkpoint; for an `item` of None the root holds its arrays.

    Raises:
        StateError: The installed Orbax cannot be told which tree.
    """
    if orbax_release.is_at_least("0.11.14"):
        return _function("load", "load_pytree")(root, target, checkpointable_name=item)
    if item != "pytree":
        raise StateError(orbax_release.lacks(f"an item called {item!r}", "0.11.14"))
    return load(root, target)


def describe_item(root: epath.Path, item: str | None) -> Any:
    """Returns one tree of a checkpoint with a description in place of each leaf.

    Those of arrays have a `shape` and a `dtype`. Returns None where there is no metadata.
    """
    if orbax_release.is_at_least("0.11.26"):
        return _function("metadata", "pytree_metadata")(root, checkpointable_name=item).metadata
    return _described_by_v0(root if item is None else root / item)


def _described_by_v0(directory: epath.Path) -> Any:
    import jax
    from orbax.checkpoint import PyTreeCheckpointHandler, metadata

    def of(leaf: Any) -> Any:
        # A description stands for a scalar too, where a target must have a value.
        kinds = {metadata.StringMetadata: ""}
        scalar = isinstance(leaf, metadata.ScalarMetadata)
        return leaf.dtype.type(0).item() if scalar else kinds.get(type(leaf), leaf)

    described = PyTreeCheckpointHandler().metadata(directory)
    return jax.tree.map(of, getattr(described, "tree", described))


def _function(name: str, earlier_name: str) -> Any:
    from orbax.checkpoint import v1 as ocp

    return getattr(ocp, name, None) or getattr(ocp, earlier_name)
