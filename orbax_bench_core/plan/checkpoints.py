"""Trees of existing checkpoints, from their metadata alone."""

from __future__ import annotations

from orbax_bench_core.errors import UserError
from orbax_bench_core.inventory import StoredArray, StoredCheckpoint, read_checkpoint
from orbax_bench_core.plan.meshes import PlanMesh
from orbax_bench_core.plan.trees import PlannedArray, PlannedTree


def tree_of_checkpoint(path: str) -> PlannedTree:
    """Returns the tree of a checkpoint, with its partitions and chunks as they were saved."""
    return tree_of_stored(read_checkpoint(path))


def tree_of_stored(stored: StoredCheckpoint) -> PlannedTree:
    """Returns the tree of a checkpoint that was read.

    Raises:
        UserError: It has no array that can be told.
    """
    known = [array for array in stored.arrays if array.zarr is not None and not array.is_scalar]
    if not known:
        reason = stored.problems[0] if stored.problems else "it holds none"
        raise UserError(f"no array of checkpoint {stored.path!r} can be told: {reason}")
    paths = {array.name: array.path or (array.name,) for array in stored.arrays}
    known.sort(key=lambda array: [str(key) for key in paths[array.name]])
    arrays = tuple(
        PlannedArray(paths[array.name], array.zarr.shape, array.zarr.dtype, array.spec or ())
        for array in known
        if array.zarr is not None
    )
    return PlannedTree(
        stored.path.rstrip("/").rpartition("/")[2],
        arrays,
        numbers=tuple(paths[array.name] for array in stored.arrays if array.is_scalar),
        strings=tuple(tuple(name.split(".")) for name in stored.strings),
        saved={array.name: array.zarr.chunk_shape for array in known if array.zarr is not None},
    )


def saved_mesh(stored: StoredCheckpoint) -> PlanMesh | None:
    """Returns the mesh that a checkpoint was saved from; None where nothing tells.

    Its hosts are as many as the processes that wrote it.
    """
    meshes = {_key(array): array.mesh for array in stored.arrays if array.mesh}
    if not meshes:
        return None
    mesh = max(meshes.values(), key=lambda sizes: len(sizes or ()))
    assert mesh is not None
    found = PlanMesh(tuple(mesh), tuple(mesh.values()), 1)
    processes = stored.processes or 1
    if found.num_devices % processes:
        return None
    return PlanMesh(found.axes, found.sizes, found.num_devices // processes)


def _key(array: StoredArray) -> str:
    return str(array.mesh)
