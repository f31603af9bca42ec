"""State dicts of PyTorch from a tree of JAX, and back: same bytes, dtypes and shards per process.

Every process is one rank of PyTorch. State dicts are flat: the dotted path of each leaf is its key.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from orbax_bench_core.state.torch_ranks import (
    Box,
    boundaries,
    over_ranks,
    owners,
    part_of_process,
    within,
)
from orbax_bench_core.state.torch_values import to_numpy, to_torch, torch_dtype
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
