"""Existing checkpoints: location, sharding files, load as state, and saved fixtures."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import pydantic
from etils import epath
from jax.experimental import multihost_utils
from jax.sharding import Mesh

from orbax_bench_core import config, inventory
from orbax_bench_core.config import CheckpointConfig, ShardingEntry
from orbax_bench_core.errors import UserError, first_fault
from orbax_bench_core.files import absolute, place, read_at_most, read_json
from orbax_bench_core.inventory import ROOT_FILE, UNFINISHED, Location, random_keys, read_checkpoint
from orbax_bench_core.state import layout, many_hosts, orbax_api
from orbax_bench_core.state.digests import Digest, digest
from orbax_bench_core.state.tree import StateError, named_leaves

PyTree = Any


def load_checkpoint(config: CheckpointConfig) -> PyTree:
    """Loads the checkpoint at `config.path`, written by Orbax v0 or v1."""
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
    """Returns the tree of a checkpoint with a description in place of each array."""
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
    """Finds the pytree that a path names, and checks that all that it names is there."""
    location = locate(path)
    try:
        read_checkpoint(path).check()
    except UserError as error:
        raise StateError(str(error)) from None
    return location


def locate(path: str) -> Location:
    """Finds the pytree that a path names, as Orbax's v1 functions want it named."""
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
            "benchmark safetensors_load loads"
        )
    # Without metadata of the root, v1 finds no item in it, but reads the item as a checkpoint.
    return location if (location.root / ROOT_FILE).exists() else Location(location.folder)


def save_fixture(tree: Any, path: str) -> None:
    """Saves a tree as an Orbax v1 checkpoint, replacing an existing checkpoint."""
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
    """Returns the digest that was recorded in a folder; None when there is none."""
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


class _Entry(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)


class MeshEntry(_Entry):
    """A mesh: its size along each axis, and the names of the axes."""

    shape: tuple[pydantic.PositiveInt, ...]
    axes: tuple[str, ...]


class ShardingSpec(_Entry):
    """A mesh and, for each dimension of the array, the axes that shard it."""

    mesh: MeshEntry
    spec: tuple[ShardingEntry, ...]


class LeafEntry(_Entry):
    """The target of one leaf: its shape in elements, its dtype and its sharding."""

    shape: tuple[pydantic.NonNegativeInt, ...]
    dtype: str
    sharding: ShardingSpec


ShardingFile = dict[str, LeafEntry]


def read_sharding_file(path: str) -> ShardingFile:
    """Reads the entries of a sharding file."""
    file = place(path)
    if not file.exists():
        raise StateError(
            f"sharding_config_path {path!r} does not exist; give the path of a sharding JSON file"
        )
    try:
        return pydantic.TypeAdapter(ShardingFile).validate_json(read_at_most(file))
    except OSError as error:
        raise StateError(f"sharding_config_path {path!r}: {error}") from None
    except pydantic.ValidationError as error:
        raise StateError(
            f"sharding_config_path {path!r}: {first_fault(error)}; an entry is "
            '{"shape": [8], "dtype": "float32", "sharding": {"mesh": {"shape": [4], '
            '"axes": ["x"]}, "spec": ["x"]}}'
        ) from None


def sharding_targets(
    entries: ShardingFile, shapes: Mapping[str, Sequence[int]], devices: Sequence[jax.Device]
) -> dict[str, jax.ShapeDtypeStruct]:
    """Turns the entries into load targets for the arrays of a checkpoint, by dotted path."""
    missing = [name for name in shapes if name not in entries]
    if missing:
        raise StateError(
            f"the sharding file has no entry for {len(missing)} of {len(shapes)} arrays of the "
            f"checkpoint: {_some(missing)}; add them, or give the file made for this checkpoint"
        )
    meshes: dict[MeshEntry, Mesh] = {}
    return {
        name: _target(name, entries[name], shape, devices, meshes) for name, shape in shapes.items()
    }


def _target(
    name: str,
    entry: LeafEntry,
    shape: Sequence[int],
    devices: Sequence[jax.Device],
    meshes: dict[MeshEntry, Mesh],
) -> jax.ShapeDtypeStruct:
    if tuple(shape) != entry.shape:
        raise StateError(
            f"leaf {name!r}: the sharding file says shape {list(entry.shape)}, the checkpoint "
            f"holds {list(shape)}; give the file made for this checkpoint"
        )
    dtype = config.canonical(entry.dtype)
    if dtype is None:
        raise StateError(
            f"leaf {name!r}: unknown dtype {entry.dtype!r}; known: {_some(config.BITS)}"
        )
    layout.check_dtype(name, dtype)
    spec, mesh_entry = entry.sharding.spec, entry.sharding.mesh
    if len(spec) > len(shape):
        raise StateError(
            f"leaf {name!r}: spec has {len(spec)} entries for {len(shape)} dimensions; give at "
            "most one for each"
        )
    if mesh_entry not in meshes:
        meshes[mesh_entry] = _mesh(name, mesh_entry, devices)
    sharding = layout.named_sharding(name, shape, spec, meshes[mesh_entry])
    return jax.ShapeDtypeStruct(tuple(shape), jnp.dtype(dtype), sharding=sharding)


def _mesh(name: str, entry: MeshEntry, devices: Sequence[jax.Device]) -> Mesh:
    if len(entry.shape) != len(entry.axes) or len(set(entry.axes)) != len(entry.axes):
        raise StateError(
            f"leaf {name!r}: mesh shape {list(entry.shape)} and axes {list(entry.axes)} differ in "
            "length or repeat an axis; name each size once"
        )
    if math.prod(entry.shape) != len(devices):
        raise StateError(
            f"leaf {name!r}: mesh {list(entry.shape)} needs {math.prod(entry.shape)} devices; "
            f"{len(devices)} are here; change the mesh in the sharding file or the device count"
        )
    return Mesh(np.array(devices, dtype=object).reshape(entry.shape), entry.axes)


def _some(names: Sequence[str] | Mapping[str, int]) -> str:
    listed = [str(name) for name in names]
    return ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")
