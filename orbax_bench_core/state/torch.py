"""State dicts of PyTorch from a tree of JAX, and back: same bytes, dtypes and shards per process.

Every process is one rank of PyTorch. State dicts are flat: the dotted path of each leaf is its key.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from orbax_bench_core.interface import UnmetNeed
from orbax_bench_core.state.tree import named_leaves

if TYPE_CHECKING:
    import torch


PyTree = Any
StateDict = dict[str, Any]


class TorchLayout:
    """Layout of a tree in PyTorch: the part of each array that this process has as a tensor."""

    def __init__(self, target: PyTree, device: torch.device, *, join: bool) -> None:
        """Finds out the part of each array of a target of a load, to be tensors on a device."""
        self._target = target
        self._device = device
        named = dict(named_leaves(target))
        self._names = tuple(named)
        self._arrays: Mapping[str, jax.ShapeDtypeStruct] = {
            name: leaf for name, leaf in named.items() if isinstance(leaf, jax.ShapeDtypeStruct)
        }
        arrays = self._arrays
        self._parts = {
            name: part_of_process(name, tuple(leaf.shape), leaf.sharding, join=join)
            for name, leaf in arrays.items()
        }
        self._dtypes = {name: torch_dtype(name, leaf.dtype.name) for name, leaf in arrays.items()}
        self._shapes = {
            name: tuple(stop - start for start, stop in boundaries(part, arrays[name].shape))
            for name, part in self._parts.items()
        }

    def local(self, tree: PyTree) -> StateDict:
        """Returns the part of the tree in this process, as tensors."""
        # On a CPU a tensor lies over the memory of its array, unless shards are joined; it must not
        # be written to.
        return {
            name: self._tensor(name, leaf) if name in self._arrays else leaf
            for name, leaf in named_leaves(tree)
        }

    def empty(self) -> StateDict:
        """Returns fresh tensors to load into, and None in place of numbers and strings."""
        # The tensors hold what their memory held before: to set them to zero would be at PyTorch's
        # cost, and Orbax does not.
        import torch

        return {
            name: torch.empty(self._shapes[name], dtype=self._dtypes[name], device=self._device)
            if name in self._shapes
            else None
            for name in self._names
        }

    def distribute(self, tensors: Mapping[str, Any]) -> StateDict:
        """Returns a state dict in which each array that is spread over a mesh is a `DTensor`."""
        # Every process must call, and the default process group must be there.
        from torch.distributed.tensor import DTensor

        whole = dict(tensors)
        for name, (mesh, placements) in self._spread.items():
            shape = tuple(self._arrays[name].shape)
            whole[name] = DTensor.from_local(
                tensors[name],
                mesh,
                placements,
                run_check=False,
                shape=shape,
                stride=_strides(shape),
            )
        return whole

    def to_jax(self, tensors: Mapping[str, Any]) -> PyTree:
        """Returns the tree whose parts the processes hold as tensors."""
        leaves = [
            self._array(name, tensors[name]) if name in self._arrays else tensors[name]
            for name in self._names
        ]
        return jax.tree.unflatten(jax.tree.structure(self._target), leaves)

    @functools.cached_property
    def _spread(self) -> dict[str, tuple[Any, list[Any]]]:
        from torch.distributed.tensor import Replicate, Shard

        spread = {}
        for name, leaf in self._arrays.items():
            if isinstance(leaf.sharding, NamedSharding):
                mesh = leaf.sharding.mesh
                assert isinstance(mesh, Mesh)
                ranks = over_ranks(owners(mesh), mesh.axis_names, leaf.sharding.spec)
                kind, grid = self._device.type, ranks.grid
                spread[name] = (
                    _device_mesh(kind, ranks.axes, grid.shape, grid.tobytes()),
                    [Replicate() if axis is None else Shard(axis) for axis in ranks.dimensions],
                )
        return spread

    def _tensor(self, name: str, array: jax.Array) -> torch.Tensor:
        values = _held(array, self._parts[name], self._shapes[name])
        return to_torch(values, self._dtypes[name]).to(self._device)

    def _array(self, name: str, tensor: Any) -> jax.Array:
        target, part = self._arrays[name], self._parts[name]
        local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        values = to_numpy(local, np.dtype(target.dtype), self._shapes[name])
        shape = tuple(target.shape)

        def shard(index: Any) -> Any:
            place: Any = within(index, part, shape)
            return values[place]

        return jax.make_array_from_callback(shape, target.sharding, shard)


def _held(array: jax.Array, part: Box, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Returns the part of an array that this process holds, without a copy where it can."""
    first, *others = array.addressable_shards
    if all(shard.index == first.index for shard in others):
        return np.asarray(first.data)
    values = np.empty(shape, array.dtype)
    for shard in array.addressable_shards:
        place: Any = within(shard.index, part, array.shape)
        values[place] = np.asarray(shard.data)
    return values


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * max(size, 1))
    return tuple(reversed(strides[: len(shape)]))


@functools.cache
def _device_mesh(kind: str, axes: tuple[str, ...], shape: tuple[int, ...], ranks: bytes) -> Any:
    """Makes each mesh once: the processes make a group per axis together."""
    import torch
    from torch.distributed.device_mesh import DeviceMesh

    grid = np.frombuffer(ranks, np.int64).reshape(shape)
    return DeviceMesh(kind, torch.from_numpy(grid.copy()), mesh_dim_names=axes)


_DTYPES: Final = frozenset(
    {
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
        *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    }
)
"""Dtypes that JAX and PyTorch call by the same name and store as the same bits."""


def torch_dtype(name: str, dtype: str) -> torch.dtype:
    """Returns the dtype of the same name."""
    import torch

    found = getattr(torch, dtype, None) if dtype in _DTYPES else None
    if found is None:
        raise UnmetNeed(
            f"PyTorch {torch.__version__} has no {dtype}, which {name!r} is: leave it out, or give "
            f"one of {', '.join(sorted(_DTYPES))}"
        )
    kind: torch.dtype = found
    return kind


def to_torch(values: np.ndarray[Any, Any], dtype: torch.dtype) -> torch.Tensor:
    """Returns a tensor over the memory of an array, which it must not write to."""
    import torch

    bits = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    with warnings.catch_warnings():
        # An array of JAX cannot be written to, and is not.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        flat: torch.Tensor = torch.from_numpy(bits)
    return flat.view(dtype).reshape(values.shape)


def to_numpy(
    tensor: torch.Tensor, dtype: np.dtype[Any], shape: Sequence[int]
) -> np.ndarray[Any, Any]:
    """Returns the values of a tensor of this form, on any device."""
    import torch

    wanted = torch_dtype("", dtype.name)
    if tensor.dtype != wanted or tuple(tensor.shape) != tuple(shape):
        raise ValueError(
            f"{tensor.dtype} {list(tensor.shape)} was loaded where {wanted} {list(shape)} was saved"
        )
    bits = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    values: np.ndarray[Any, Any] = bits.numpy().view(dtype).reshape(tuple(shape))
    return values


Box = tuple[slice, ...]
"""A part of an array: where it begins and ends in each dimension."""


@dataclasses.dataclass(frozen=True)
class Ranks:
    """Spread of an array over the processes."""

    grid: np.ndarray[Any, np.dtype[np.int64]]  # index of the process at each place of the mesh
    axes: tuple[str, ...]  # of the grid
    dimensions: tuple[int | None, ...]  # of the array, which each axis shards or replicates


def part_of_process(name: str, shape: tuple[int, ...], sharding: Sharding, *, join: bool) -> Box:
    """Returns the part of an array that this process holds."""
    devices = sharding.addressable_devices
    if len(devices) > 1 and not join:
        wanted = len(sharding.device_set)
        raise UnmetNeed(
            f"PyTorch has one device per process, and here a process has {len(devices)}: set "
            f"processes: {wanted} under execution for as many shards as Orbax has, or "
            "join_local_shards: true to have the shards of a process as one"
        )
    boxes = {boundaries(box, shape) for box in _boxes(sharding, shape)}
    around = tuple(
        (min(box[axis][0] for box in boxes), max(box[axis][1] for box in boxes))
        for axis in range(len(shape))
    )
    if _volume(around) != sum(map(_volume, boxes)):
        raise UnmetNeed(
            f"PyTorch has one tensor per process; the shards of {name!r} that a process holds are "
            "not side by side: set as many processes as devices, or other axes in its sharding"
        )
    return tuple(slice(*ends) for ends in around)


def owners(mesh: Mesh) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the index of the process that each device of a mesh belongs to."""
    devices = mesh.devices
    return np.array([device.process_index for device in devices.flat], np.int64).reshape(
        devices.shape
    )


def over_ranks(
    owners: np.ndarray[Any, np.dtype[np.int64]], axes: Sequence[str], spec: PartitionSpec
) -> Ranks:
    """Returns how an array is spread over processes, as a `DeviceMesh` and its placements say."""
    # A `DeviceMesh` cuts a dimension by its first axis first. Where a sharding names its axes in
    # another order, the axes of the grid change places.
    names = list(axes)
    blocks = [_first_run(owners, axis) for axis in range(owners.ndim)]
    grid = owners[tuple(slice(None, None, size) for size in blocks)]
    whole = grid
    for axis, size in enumerate(blocks):
        whole = np.repeat(whole, size, axis=axis)
    # A process may come again only within its own block.
    if not np.array_equal(whole, owners) or len(np.unique(grid)) != grid.size:
        raise UnmetNeed(
            "PyTorch lays processes out as a grid, and the devices of each are no block of the "
            f"mesh {dict(zip(names, owners.shape, strict=True))}: set as many processes as devices"
        )
    shards = {
        axis: dimension
        for dimension, entry in enumerate(spec)
        for axis in ((entry,) if isinstance(entry, str) else entry or ())
    }
    replicating = [name for name in names if name not in shards]
    order = names if _is_in_order(shards, names) else [*shards, *replicating]
    return Ranks(
        grid=grid.transpose([names.index(name) for name in order]),
        axes=tuple(order),
        dimensions=tuple(shards.get(name) for name in order),
    )


def boundaries(box: Sequence[slice], shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Returns where a part of an array begins and ends in each dimension."""
    return tuple(part.indices(size)[:2] for part, size in zip(box, shape, strict=True))


def within(box: Sequence[slice], outer: Sequence[slice], shape: Sequence[int]) -> Box:
    """Returns a part of an array as a part of another part that holds it."""
    pairs = zip(boundaries(box, shape), boundaries(outer, shape), strict=True)
    return tuple(slice(start - first, stop - first) for (start, stop), (first, _) in pairs)


def _boxes(sharding: Sharding, shape: tuple[int, ...]) -> list[Box]:
    found = sharding.addressable_devices_indices_map(shape).values()
    return [box for box in found if box is not None]


def _volume(box: Sequence[tuple[int, int]]) -> int:
    return math.prod(stop - start for start, stop in box)


def _first_run(owners: np.ndarray[Any, Any], axis: int) -> int:
    """Returns how many places along an axis belong to the process at the origin."""
    line = owners[tuple(slice(None) if each == axis else 0 for each in range(owners.ndim))]
    others = np.flatnonzero(line != line[0])
    return int(others[0]) if others.size else len(line)


def _is_in_order(shards: dict[str, int], names: list[str]) -> bool:
    """Says whether the axes that shard one dimension follow each other as in the mesh."""
    positions = [(dimension, names.index(axis)) for axis, dimension in shards.items()]
    return positions == sorted(positions)
