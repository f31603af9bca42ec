"""Saved fixtures, and the digests of leaves that are recorded next to a checkpoint."""

from __future__ import annotations

import json
from typing import Any, Final

import jax
from etils import epath
from jax.experimental import multihost_utils

from orbax_bench_core.files import absolute, read_json
from orbax_bench_core.inventory import ROOT_FILE
from orbax_bench_core.state import orbax_api
from orbax_bench_core.state.digests import Digest, digest
from orbax_bench_core.state.tree import StateError


def save_fixture(tree: Any, path: str) -> None:
    """Saves a tree as an Orbax v1 checkpoint, replacing an existing checkpoint.

    Args:
        tree: Arrays and scalars; every process has the same tree.
        path: Folder of the checkpoint, local or gs://.

    Raises:
        StateError: Something else than a checkpoint is there.
    """
    # The digest of each leaf is recorded beside it, so that a load can tell whether its values are
    # still those that were saved.
    root = absolute(path)
    is_free = not root.exists() or (root.is_dir() and not any(root.iterdir()))
    if not is_free and not (root / ROOT_FILE).exists():
        raise StateError(
            f"{path!r} exists and is not a checkpoint, so it is not overwritten; give an empty "
            "or new directory"
        )
    if jax.process_count() > 1:
        # No process may look at the path after another has begun to replace what is there.
        multihost_utils.sync_global_devices("save_fixture")
    orbax_api.replace(root, tree)
    record_digest(root, digest(tree))


DIGESTS_FILE: Final = "digests.json"
"""File with the content digest of each leaf, one for all hosts: the layout plays no part in it."""


def record_digest(directory: epath.Path, found: Digest) -> None:
    """Writes a digest; every process may call, the first one writes."""
    if jax.process_index() == 0:
        directory.mkdir(parents=True, exist_ok=True)
        text = json.dumps(found, indent=2, sort_keys=True)
        (directory / DIGESTS_FILE).write_text(text)


def recorded_digest(directory: epath.Path) -> Digest | None:
    """Returns the digest that was recorded in a folder; None when there is none.

    Raises:
        StateError: The file is there, and is no digest per leaf.
    """
    file = directory / DIGESTS_FILE
    if not directory.is_dir() or not file.exists():
        return None
    try:
        content = read_json(file)
    except ValueError:
        content = None
    if not isinstance(content, dict) or not all(isinstance(v, str) for v in content.values()):
        raise StateError(
            f"{str(file)!r} is not a digest per leaf, as capture_digests_path writes it; remove "
            "it, and nothing is compared with it"
        )
    return Digest(content)
