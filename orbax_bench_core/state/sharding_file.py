"""Sharding files: a target layout for each array of an existing checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pydantic
from jax.sharding import Mesh

from orbax_bench_core import config
from orbax_bench_core.config import ShardingEntry
from orbax_bench_core.errors import first_fault
from orbax_bench_core.files import place, read_at_most
from orbax_bench_core.state import layout
from orbax_bench_core.state.tree import StateError


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
    """Reads the entries of a sharding file.

    Returns:
        The target of each leaf, by dotted path.

    Raises:
        StateError: The file is missing or cannot be read, or an entry is not of the form.
    """
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
    """Turns the entries into load targets for the arrays of a checkpoint, by dotted path.

    Args:
        entries: The targets by dotted path.
        shapes: Global shape of each array of the checkpoint, in elements.
        devices: The devices of all processes, which every mesh must use.

    Raises:
        StateError: An array has no entry, or one of another shape, of an unknown dtype, or for
            another number of devices.
    """
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
