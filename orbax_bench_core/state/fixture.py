"""Writes a tree as a checkpoint that `checkpoint_config.path` can name later."""

from __future__ import annotations

from typing import Any

import jax
from jax.experimental import multihost_utils

from orbax_bench_core.state import orbax_api
from orbax_bench_core.state.errors import StateError
from orbax_bench_core.state.locating import ROOT_MARK, absolute


def save_fixture(tree: Any, path: str) -> None:
    """Saves a tree as an Orbax v1 checkpoint, replacing a checkpoint that is there.

    Args:
        tree: The state to save.
        path: Local path or object-store address of the checkpoint's root.

    Raises:
        StateError: The path holds something that is not a checkpoint; it is left alone.
    """
    root = absolute(path)
    is_free = not root.exists() or (root.is_dir() and not any(root.iterdir()))
    if not is_free and not (root / ROOT_MARK).exists():
        raise StateError(
            f"{path!r} exists and is not a checkpoint, so it is not overwritten; give an empty "
            "or new directory"
        )
    if jax.process_count() > 1:
        # No process may look at the path after another has begun to replace what is there.
        multihost_utils.sync_global_devices("save_fixture")
    orbax_api.replace(root, tree)
