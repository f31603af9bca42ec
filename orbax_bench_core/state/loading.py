"""Loads an existing checkpoint as the state of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from orbax_bench_core.config.checkpoint import CheckpointConfig
from orbax_bench_core.state import layout, orbax_api, pathways, precision, sharding_file
from orbax_bench_core.state.errors import StateError
from orbax_bench_core.state.locating import Location, locate
from orbax_bench_core.state.naming import named_leaves

PyTree = Any


def load_checkpoint(config: CheckpointConfig) -> PyTree:
    """Loads the checkpoint at `config.path`, written by Orbax v0 or v1.

    Arrays take the sharding that the file at `sharding_config_path` gives them or, without one,
    spread over all devices as far as their dimensions allow. The mesh of the suite plays no part.

    Args:
        config: Path of a checkpoint root or of one item in it, and how to load it.

    Returns:
        Nested dicts and lists of `jax.Array` and Python scalars. The arrays are ready.

    Raises:
        StateError: The path is not a checkpoint, or the sharding file does not fit it or the
            devices.
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
    """Returns the tree of a checkpoint with a description in place of each array.

    Args:
        path: Path of a checkpoint root or of one item in it.

    Raises:
        StateError: The path is not a checkpoint.
    """
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
        targets = sharding_file.targets(sharding_file.read(file), shapes, devices)
    leaves = [targets.get(name, leaf) for name, leaf in named_leaves(described)]
    return jax.tree.unflatten(jax.tree.structure(described), leaves)


def _spread(
    arrays: Mapping[str, Any], devices: Sequence[jax.Device]
) -> dict[str, jax.ShapeDtypeStruct]:
    targets = {}
    for name, leaf in arrays.items():
        precision.check_dtype(name, jnp.dtype(leaf.dtype).name)
        sharding = layout.spread(leaf.shape, devices)
        targets[name] = jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
    return targets
