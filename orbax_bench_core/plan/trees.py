"""Trees to plan for: arrays by shape, dtype and partition, from a spec, a checkpoint or a model."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any, Final

from orbax_bench_core import config
from orbax_bench_core.errors import UserError
from orbax_bench_core.inventory import StoredCheckpoint, read_checkpoint
from orbax_bench_core.plan.meshes import PlanMesh, named
from orbax_bench_core.sweep import benchmark_environment, printed_apart

_TIMEOUT_S: Final = 300.0


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedArray:
    """An array that will be saved.

    Attributes:
        path: Its keys in the tree; whole numbers are places in a list.
        shape: Global shape, in elements.
        dtype: Its dtype, as `jax.numpy` spells it.
        spec: One entry per leading dimension: axis name, names, or None, as in a `PartitionSpec`.
    """

    path: tuple[str | int, ...]
    shape: tuple[int, ...]
    dtype: str
    spec: tuple[config.ShardingEntry, ...] = ()

    @property
    def name(self) -> str:
        """Its name in the store."""
        return ".".join(map(str, self.path))

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return config.BITS[self.dtype] // 8

    @property
    def num_bytes(self) -> int:
        """Bytes of the whole array."""
        return math.prod(self.shape) * self.itemsize


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedTree:
    """A tree that will be saved.

    Attributes:
        label: What people call it.
        arrays: Its arrays, in the order in which JAX flattens the tree: keys sorted.
        numbers: Paths of its Python numbers, each of which Orbax stores as an array of its own.
        strings: Paths of its strings, which Orbax keeps in one file.
        saved: Chunk shape of each array by its name, where the tree is an existing checkpoint.
        problems: What keeps that checkpoint from being loaded.
        notes: What of it is no part of the tree, or was not looked at.
    """

    label: str
    arrays: tuple[PlannedArray, ...]
    numbers: tuple[tuple[str | int, ...], ...] = ()
    strings: tuple[tuple[str | int, ...], ...] = ()
    saved: dict[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def elements(self) -> int:
        """Elements of all arrays."""
        return sum(math.prod(array.shape) for array in self.arrays)

    @property
    def num_bytes(self) -> int:
        """Bytes of all arrays, replicas once."""
        return sum(array.num_bytes for array in self.arrays)


def tree_of_config(
    checkpoint: config.CheckpointConfig, mesh: PlanMesh | None, *, suite_file: str = ""
) -> PlannedTree:
    """Returns the tree of a `checkpoint_config`.

    Args:
        checkpoint: Spec, preset, factory or path.
        mesh: The mesh, whose axis names decide the partitions of presets; None for one device.
        suite_file: A factory's module may lie beside it.

    Raises:
        UserError: There is no tree in it, or it cannot be read.
    """
    if checkpoint.path is not None:
        return tree_of_stored(read_checkpoint(checkpoint.path))
    if checkpoint.nnx is not None:
        entries = _described(checkpoint.nnx, benchmark_environment(suite_file))
        return _planned(checkpoint.nnx, entries, () if mesh is None else mesh.axes)
    suite_mesh = None
    if mesh is not None:
        sizes = dict(zip(mesh.axes, mesh.sizes, strict=True))
        suite_mesh = config.MeshConfig(mesh_axes=mesh.axes, ici_parallelism=sizes)
    spec = config.expanded(checkpoint, suite_mesh).spec
    if not spec:
        raise UserError(
            "there is no tree to plan for: checkpoint_config needs `spec`, `model`, `nnx` or `path`"
        )
    return tree_of_spec(spec, label=checkpoint.label)


def tree_of_stored(stored: StoredCheckpoint) -> PlannedTree:
    """Returns the tree of a checkpoint that was read.

    Raises:
        UserError: It has no array that can be told.
    """
    known = [(a, a.zarr) for a in stored.arrays if a.zarr is not None and not a.is_scalar]
    if not known:
        reason = next(iter((*stored.problems, *stored.unloadable)), "it holds none")
        raise UserError(f"no array of checkpoint {stored.path!r} can be described: {reason}")
    paths = {array.name: array.path or (array.name,) for array in stored.arrays}
    known.sort(key=lambda pair: [str(key) for key in paths[pair[0].name]])
    arrays = tuple(
        PlannedArray(paths[array.name], zarr.shape, zarr.dtype, array.spec or ())
        for array, zarr in known
    )
    return PlannedTree(
        stored.path.rstrip("/").rpartition("/")[2],
        arrays,
        numbers=tuple(paths[array.name] for array in stored.arrays if array.is_scalar),
        strings=tuple(tuple(name.split(".")) for name in stored.strings),
        # Of safetensors any range of bytes is read alone: they are planned for as Orbax saves them.
        saved={} if stored.is_safetensors else {a.name: zarr.chunk_shape for a, zarr in known},
        problems=(*stored.problems, *stored.unloadable),
        notes=stored.notes,
    )


def saved_mesh(stored: StoredCheckpoint) -> PlanMesh | None:
    """Returns the mesh that a checkpoint was saved from; None if nothing tells.

    Its hosts are as many as the processes that wrote it.
    """
    meshes = [array.mesh for array in stored.arrays if array.mesh]
    if not meshes:
        return None
    mesh = max(meshes, key=len)
    found = PlanMesh(tuple(mesh), tuple(mesh.values()), 1)
    processes = stored.processes or 1
    if found.num_devices % processes:
        return None
    return PlanMesh(found.axes, found.sizes, found.num_devices // processes)


def tree_of_spec(spec: config.Spec, *, label: str) -> PlannedTree:
    """Returns the tree of a spec, in the order in which JAX flattens it.

    Raises:
        UserError: The spec has no array.
    """
    found = sorted(config.leaves(spec), key=lambda leaf: leaf[0])
    arrays = tuple(
        PlannedArray(path, leaf.shape, leaf.dtype, leaf.sharding or ())
        for path, leaf in found
        if isinstance(leaf, config.ArraySpec)
    )
    if not arrays:
        raise UserError("the tree has no array: there is nothing to plan")
    return PlannedTree(
        label,
        arrays,
        numbers=tuple(path for path, leaf in found if leaf == "int"),
        strings=tuple(path for path, leaf in found if leaf == "str"),
    )


def onto(array: PlannedArray, mesh: PlanMesh) -> tuple[config.ShardingEntry, ...]:
    """Returns the partition of an array on a mesh that may lack some of its axes.

    Raises:
        UserError: An axis is used twice, or does not divide its dimension.
    """
    kept = [tuple(axis for axis in named(entry) if axis in mesh.axes) for entry in array.spec]
    used = [axis for axes in kept for axis in axes]
    if len(set(used)) != len(used):
        raise UserError(f"array {array.name!r}: partition {list(array.spec)} uses an axis twice")
    if len(kept) > len(array.shape):
        raise UserError(
            f"array {array.name!r}: partition {list(array.spec)} has more entries than the "
            f"{len(array.shape)} dimensions of the array"
        )
    for dimension, axes in enumerate(kept):
        parts = mesh.size(axes)
        if array.shape[dimension] % parts:
            raise UserError(
                f"array {array.name!r}: dimension {dimension} has {array.shape[dimension]} "
                f"elements, which {mesh.label} cannot split into {parts} equal parts: JAX refuses "
                "it; use another mesh, or a multiple"
            )
    return tuple(
        None if not axes else axes[0] if isinstance(entry, str) else axes
        for entry, axes in zip(array.spec, kept, strict=True)
    )


def unknown_axes(arrays: Sequence[PlannedArray], mesh: PlanMesh) -> tuple[str, ...]:
    """Returns the axes that partitions name and the mesh lacks: arrays are whole along them."""
    used = {axis for array in arrays for entry in array.spec for axis in named(entry)}
    return tuple(sorted(used - set(mesh.axes)))


def tree_of_model(factory: str, suite_file: str) -> PlannedTree:
    """Returns the tree of a Flax NNX model, with every mesh axis that its variables name.

    Args:
        factory: `module:factory`, in an installed module or in one beside the suite, as for a
            worker; the folder that this runs in does not count.
        suite_file: The suite, which need not be there yet.

    Raises:
        UserError: The model cannot be built, or its state has no array.
    """
    entries = _described(factory, benchmark_environment(suite_file))
    return _planned(factory, entries, None)


def _described(factory: str, environment: dict[str, str]) -> list[dict[str, Any]]:
    """Returns the state of a Flax NNX model, described by a process that imports it."""
    printed = printed_apart(
        "orbax_bench_core.state.nnx", "tree", factory, environment=environment, within_s=_TIMEOUT_S
    )
    found: list[dict[str, Any]] = json.loads(printed.strip().rpartition("\n")[2])
    return found


def _planned(
    factory: str, entries: Sequence[dict[str, Any]], axes: Sequence[str] | None
) -> PlannedTree:
    """Returns a described model; of its mesh axes those in `axes`, all where that is None."""
    arrays = tuple(
        PlannedArray(
            tuple(entry["path"]), tuple(entry["shape"]), entry["dtype"], _kept(entry["spec"], axes)
        )
        for entry in entries
    )
    if not arrays:
        raise UserError(f"the state of {factory!r} has no array: there is nothing to plan")
    return PlannedTree(factory.partition(":")[2], arrays)


def _kept(spec: Sequence[Any], axes: Sequence[str] | None) -> tuple[config.ShardingEntry, ...]:
    """Returns a partition without the axes that a mesh lacks, as a model of ours is laid out."""
    found = (named(tuple(entry) if isinstance(entry, list) else entry) for entry in spec)
    return tuple(
        tuple(axis for axis in entry if axes is None or axis in axes) or None for entry in found
    )
