"""Names for the leaves of a pytree: dotted paths such as `params.layers.0.w`."""

from __future__ import annotations

from typing import Any

import jax

from orbax_bench_core.state import jax_api
from orbax_bench_core.state.errors import StateError

PyTree = Any


def named_leaves(tree: PyTree) -> list[tuple[str, Any]]:
    """Returns every leaf of `tree` with its dotted path, in the order of `jax.tree.leaves`.

    Args:
        tree: Any pytree; mappings give their keys, sequences their indices, other nodes the names
            of their fields.

    Returns:
        Pairs of path and leaf. A tree that is one leaf has the path "".

    Raises:
        StateError: Two leaves have the same path, for example `{"a.b": x, "a": {"b": y}}`.
    """
    named: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = jax_api.leaf_name(path)
        if name in named:
            raise StateError(f"two leaves are called {name!r}; rename one of them")
        named[name] = leaf
    return list(named.items())
