"""Existing checkpoints: location of the pytree, load as state, and saved fixtures."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
from etils import epath
from jax.experimental import multihost_utils

from orbax_bench_core.config import CheckpointConfig
from orbax_bench_core.files import absolute, matching
from orbax_bench_core.state import layout, orbax_api, pathways, sharding_file
from orbax_bench_core.state.digests import digest
from orbax_bench_core.state.recorded import record_digest
from orbax_bench_core.state.tree import StateError, named_leaves

PyTree = Any


TREE_MARK: Final = "_METADATA"
"""File that Orbax writes beside the arrays of a pytree."""

ROOT_MARK: Final = "_CHECKPOINT_METADATA"
"""File that Orbax writes into the root of a checkpoint."""

_UNFINISHED: Final = ".orbax-checkpoint-tmp"
"""Mark of a directory that a save is still writing, or was when it ended."""

_USUAL_NAMES: Final = ("state", "pytree", "default", "items")


def load_checkpoint(config: CheckpointConfig) -> PyTree:
    """Loads the checkpoint at `config.path`, written by Orbax v0 or v1.

    Arrays take the sharding that the file at `sharding_config_path` gives them or, without one,
    spread over all devices as far as their dimensions allow. The mesh of the suite plays no part.
    """
    if config.path is None:
        raise StateError("there is nothing to load: checkpoint_config has no `path`; add one")
    location = locate(config.path)
    with pathways.loading_context(colocated_python=config.load_with_colocated_python):
        described = _described(config.path, location)
        target = _target(described, config.sharding_config_path, jax.devices())
        loaded = orbax_api.load_item(location.root, location.item, target)
    return jax.block_until_ready(loaded)


def describe(path: str) -> PyTree:
    """Returns the tree of a checkpoint with a description in place of each array."""
    return _described(path, locate(path))


def _described(path: str, location: Location) -> PyTree:
    try:
        described = orbax_api.describe_item(location.root, location.item)
    except (ValueError, OSError, LookupError) as error:
        raise _unreadable(path, str(error)) from error
    if described is None:
        raise _unreadable(path, f"its item {location.item!r} has no readable metadata")
    return described


def _unreadable(path: str, reason: str) -> StateError:
    return StateError(
        f"checkpoint {path!r} cannot be read by Orbax: {reason}; give one whose save finished"
    )


def _target(described: PyTree, file: str | None, devices: Sequence[jax.Device]) -> PyTree:
    arrays = {name: leaf for name, leaf in named_leaves(described) if hasattr(leaf, "shape")}
    if file is None:
        targets: Mapping[str, jax.ShapeDtypeStruct] = _spread(arrays, devices)
    else:
        shapes = {name: leaf.shape for name, leaf in arrays.items()}
        targets = sharding_file.sharding_targets(
            sharding_file.read_sharding_file(file), shapes, devices
        )
    leaves = [targets.get(name, leaf) for name, leaf in named_leaves(described)]
    return jax.tree.unflatten(jax.tree.structure(described), leaves)


def _spread(
    arrays: Mapping[str, Any], devices: Sequence[jax.Device]
) -> dict[str, jax.ShapeDtypeStruct]:
    targets = {}
    for name, leaf in arrays.items():
        layout.check_dtype(name, jnp.dtype(leaf.dtype).name)
        sharding = layout.spread(leaf.shape, devices)
        targets[name] = jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
    return targets


@dataclasses.dataclass(frozen=True)
class Location:
    """A pytree in storage, as Orbax's v1 functions want it.

    Attributes:
        root: Directory to open.
        item: Name of the item under it; None when the root itself holds the arrays.
    """

    root: epath.Path
    item: str | None


def locate(path: str) -> Location:
    """Finds the pytree that a path names."""
    directory = absolute(path)
    if not directory.exists():
        raise StateError(f"checkpoint path {path!r} does not exist; give an Orbax checkpoint")
    if not directory.is_dir():
        raise StateError(f"checkpoint path {path!r} is a file; give the checkpoint's directory")
    if _UNFINISHED in str(directory):
        raise StateError(
            f"checkpoint path {path!r} is of a save that has not finished; give one that has"
        )
    if (directory / TREE_MARK).exists():
        if (directory.parent / ROOT_MARK).exists():
            return Location(directory.parent, directory.name)
        return Location(directory, None)
    children = sorted(child for child in directory.iterdir() if child.is_dir())
    items = [child.name for child in children if (child / TREE_MARK).exists()]
    usual = [name for name in _USUAL_NAMES if name in items] or items
    if usual and (len(items) == 1 or usual is not items):
        return Location(directory, usual[0])
    if items:
        raise StateError(
            f"checkpoint path {path!r} holds the items {items}; give the path of one, for example "
            f"{str(directory / items[0])!r}"
        )
    steps = sorted((child for child in children if (child / ROOT_MARK).exists()), key=_by_step)
    if steps:
        raise StateError(
            f"path {path!r} holds {len(steps)} checkpoint{'s' * (len(steps) > 1)}; give the path "
            f"of one, for example {str(steps[-1])!r}"
        )
    if any(matching(directory, "*.safetensors")):
        raise StateError(
            f"path {path!r} is not an Orbax checkpoint: it holds safetensors files, which the "
            "benchmark safetensors_load loads"
        )
    raise StateError(
        f"path {path!r} is not an Orbax checkpoint: there is no {TREE_MARK} in it or one level "
        "below; give the root of a checkpoint or the directory of one item"
    )


def _by_step(directory: epath.Path) -> tuple[int, str]:
    """Sorts step 10 behind step 9."""
    name = str(directory.name)
    return int(name) if name.isdecimal() else -1, name


def save_fixture(tree: Any, path: str) -> None:
    """Saves a tree as an Orbax v1 checkpoint, replacing an existing checkpoint.

    The digest of each leaf is recorded beside it, so that whoever loads the checkpoint can tell
    whether its values are still those that were saved.
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
    record_digest(root, digest(tree))
