"""Existing checkpoints: their location, and their load as state."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from orbax_bench_core import inventory
from orbax_bench_core.config import CheckpointConfig
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import absolute
from orbax_bench_core.inventory import ROOT_FILE, UNFINISHED, Location, random_keys, read_checkpoint
from orbax_bench_core.state import layout, many_hosts, orbax_api
from orbax_bench_core.state.sharding_file import read_sharding_file, sharding_targets
from orbax_bench_core.state.tree import StateError, named_leaves

PyTree = Any


def load_checkpoint(config: CheckpointConfig) -> PyTree:
    """Loads the checkpoint at `config.path`, written by Orbax v0 or v1.

    Returns:
        The tree, its arrays ready on their devices.

    Raises:
        StateError: There is no such checkpoint, the installed Orbax cannot read it, or its sharding
            file does not fit it or these devices.
    """
    # Arrays take the sharding that the file at `sharding_config_path` gives them or, without one,
    # spread over all devices as far as their dimensions allow. The mesh of the suite plays no part.
    if config.path is None:
        raise StateError("there is nothing to load: checkpoint_config has no `path`; add one")
    location = locate_whole(config.path)
    with many_hosts.loading_context(colocated_python=config.load_with_colocated_python):
        described = describe(config.path, location)
        keys = random_keys(location)
        targets = load_targets(described, config.sharding_config_path, jax.devices(), keys)
        target = with_targets(described, targets)
        loaded = orbax_api.load_item(location.root, location.item, target)
    return jax.block_until_ready(loaded)


def describe(path: str, location: Location) -> PyTree:
    """Returns the tree of a checkpoint with a description in place of each array.

    Raises:
        StateError: Its metadata cannot be read by the installed Orbax.
    """
    try:
        described = orbax_api.describe_item(location.root, location.item)
    except (ValueError, OSError, LookupError) as error:
        raise _unreadable(path, str(error)) from error
    if described is None:
        what = "it" if location.item is None else f"its item {location.item!r}"
        raise _unreadable(path, f"{what} has no readable metadata")
    return described


def _unreadable(path: str, reason: str) -> StateError:
    release = orbax_api.installed()
    return StateError(f"checkpoint {path!r} cannot be read by Orbax {release}: {reason}")


def described_arrays(described: PyTree) -> dict[str, Any]:
    """Returns shape and dtype of each array of a checkpoint, by dotted path."""
    # A complex number is described as one of NumPy's, which has a shape as well.
    return {
        name: leaf
        for name, leaf in named_leaves(described)
        if hasattr(leaf, "shape") and not isinstance(leaf, np.generic)
    }


def load_targets(
    described: PyTree,
    sharding_path: str | None,
    devices: Sequence[jax.Device],
    keys: Collection[str] = (),
) -> dict[str, jax.ShapeDtypeStruct]:
    """Returns how each array is to be laid out: as a file says, or spread over the devices.

    The arrays called `keys` hold the data of random keys: the last dimension is one key, which JAX
    does not split.

    Args:
        described: The tree of the checkpoint, as `describe` has it.
        sharding_path: The sharding file; None spreads every array over all devices, as far as its
            dimensions allow.
        devices: The devices of all processes.
        keys: Dotted paths of the arrays that hold the data of random keys.

    Returns:
        Global shape, dtype and sharding of each array, by dotted path.

    Raises:
        StateError: An array lacks an entry, or its entry fits neither it nor the devices.
    """
    arrays = described_arrays(described)
    if sharding_path is not None:
        shapes = {name: leaf.shape for name, leaf in arrays.items()}
        entries = read_sharding_file(sharding_path)
        for name in keys:
            spec = entries[name].sharding.spec if name in entries else ()
            if len(spec) == len(shapes[name]) and spec[-1]:
                raise StateError(
                    f"leaf {name!r}: it holds random keys, whose last dimension JAX does not "
                    f"split; end its spec {list(spec)} with null"
                )
        return sharding_targets(entries, shapes, devices)
    for name, leaf in arrays.items():
        layout.check_dtype(name, jnp.dtype(leaf.dtype).name)
    return {
        name: jax.ShapeDtypeStruct(
            tuple(leaf.shape),
            leaf.dtype,
            sharding=layout.spread(leaf.shape[:-1] if name in keys else leaf.shape, devices),
        )
        for name, leaf in arrays.items()
    }


def with_targets(described: PyTree, targets: Mapping[str, jax.ShapeDtypeStruct]) -> PyTree:
    """Returns the target for `load`: the tree with a target in place of each array."""
    leaves = [targets.get(name, leaf) for name, leaf in named_leaves(described)]
    return jax.tree.unflatten(jax.tree.structure(described), leaves)


def locate_whole(path: str) -> Location:
    """Finds the pytree that a path names, and checks that all that it names is there.

    Raises:
        StateError: There is no checkpoint, its save has not finished, or a file of it is missing.
    """
    location = locate(path)
    try:
        read_checkpoint(path).check()
    except UserError as error:
        raise StateError(str(error)) from None
    return location


def locate(path: str) -> Location:
    """Finds the pytree that a path names, as Orbax's v1 functions want it named.

    Raises:
        StateError: There is no Orbax checkpoint, or its save has not finished.
    """
    if UNFINISHED in str(absolute(path)):
        raise StateError(
            f"checkpoint path {path!r} is of a save that has not finished; give one that has"
        )
    try:
        location = inventory.locate(path)
    except UserError as error:
        raise StateError(str(error)) from None
    if location.form == "safetensors":
        raise StateError(
            f"path {path!r} is not an Orbax checkpoint: it holds safetensors files, which the "
            "benchmark safetensors_load loads, as its option checkpoint_path"
        )
    # Without metadata of the root, v1 finds no item in it, but reads the item as a checkpoint.
    return location if (location.root / ROOT_FILE).exists() else Location(location.folder)
