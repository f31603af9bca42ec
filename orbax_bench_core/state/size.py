"""How big a tree is."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def tree_bytes(tree: Any) -> int:
    """Returns the bytes of all arrays of a tree, exactly.

    Args:
        tree: Any pytree. JAX and NumPy arrays count with their global shape, replicas once, types
            of less than a byte as a byte; other leaves count nothing.
    """
    return sum(
        leaf.nbytes
        for leaf in jax.tree.leaves(tree)
        if isinstance(leaf, (jax.Array, np.ndarray, np.generic))
    )
