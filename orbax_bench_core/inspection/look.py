"""A look at a checkpoint: its metadata, its files, and loads onto a mesh by arithmetic."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core import plan
from orbax_bench_core.errors import UserError
from orbax_bench_core.inventory import Inventory, StoredCheckpoint, read_checkpoint, take_inventory
from orbax_bench_core.pages import digits, num_bytes, percent, seconds

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostReads:
    """Reads of hosts that load a checkpoint, for one number of them.

    Attributes:
        mesh: The mesh and its hosts.
        reading: What each host reads.
        memory: The most memory that a load takes on a host, in bytes.
    """

    mesh: plan.PlanMesh
    reading: plan.ReadCost
    memory: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A checkpoint that was looked at, without a value of its arrays.

    Attributes:
        stored: What its files say.
        inventory: Its files by kind.
        mesh: The mesh that it would be loaded onto; None if nothing tells.
        unfit: Arrays whose chunks do not end where the shards of that mesh do.
        replicated_share: Share of all device memory there that holds another copy.
        reads: What hosts read, for several numbers of them; the first is that of the mesh.
        problems: What is wrong with it; empty if nothing was found.
        advice: What could be better.
    """

    stored: StoredCheckpoint
    inventory: Inventory
    mesh: plan.PlanMesh | None
    unfit: tuple[str, ...]
    replicated_share: float | None
    reads: tuple[HostReads, ...]
    problems: tuple[str, ...]
    advice: tuple[str, ...]

    @property
    def array_bytes(self) -> int:
        """Bytes of all values."""
        return sum(array.num_bytes for array in self.stored.arrays)

    @property
    def value_bytes(self) -> int:
        """Bytes of all chunks on storage."""
        return sum(array.stored_bytes for array in self.stored.arrays)

    @property
    def ratio(self) -> float | None:
        """Bytes of chunks over bytes of values; None for an empty or damaged checkpoint."""
        whole = sum(a.num_bytes for a in self.stored.arrays if a.chunks and not a.num_missing)
        if not whole:
            return None
        found = sum(a.stored_bytes for a in self.stored.arrays if not a.num_missing)
        return found / whole

    def arrays(self) -> pd.DataFrame:
        """Returns a row per array.

        Columns: `name`, `shape`, `dtype`, `spec`, `chunk_shape`, `chunk_bytes`, `compressor`,
        `chunks`, `missing`, `num_bytes`, `stored_bytes` and their `ratio`.
        """
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for array in self.stored.arrays:
            zarr = array.zarr
            row: dict[str, Any] = {"name": array.name, "spec": array.spec}
            if zarr is not None:
                row |= {
                    "shape": zarr.shape,
                    "dtype": zarr.dtype,
                    "chunk_shape": zarr.chunk_shape,
                    "chunk_bytes": zarr.chunk_bytes,
                    "compressor": zarr.compressor,
                }
            row |= {
                "chunks": len(array.chunks),
                "missing": array.num_missing,
                "num_bytes": array.num_bytes,
                "stored_bytes": array.stored_bytes,
                "ratio": array.stored_bytes / array.num_bytes if array.num_bytes else None,
            }
            rows.append(row)
        return pd.DataFrame(rows)

    def hosts(self) -> pd.DataFrame:
        """Returns a row per number of hosts.

        Columns: `hosts`, `devices_per_host`, `needed_bytes`, `read_bytes_least`, `read_bytes_most`
        (of the host that reads most), `least_ratio`, `most_ratio` (to what a host needs) and
        `memory_most`.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "hosts": found.mesh.num_hosts,
                "devices_per_host": found.mesh.devices_per_host,
                "needed_bytes": int(found.reading.need.max()),
                "read_bytes_least": int(found.reading.least.max()),
                "read_bytes_most": int(found.reading.most.max()),
                "least_ratio": found.reading.least_ratio,
                "most_ratio": found.reading.most_ratio,
                "memory_most": found.memory,
            }
            for found in self.reads
        )

    def numbers(self) -> dict[str, Any]:
        """Returns all numbers, as JSON has them: `by_array` and `by_hosts` are the rows of both."""
        import json

        rows = {"by_array": self.arrays(), "by_hosts": self.hosts()}
        frames = {name: json.loads(frame.to_json(orient="records")) for name, frame in rows.items()}
        return {**self.summary(), **frames}

    def summary(self) -> dict[str, Any]:
        """Returns all numbers that are no column, by name; sizes in bytes."""
        stored = self.stored
        return {
            "path": stored.path,
            "item": stored.item,
            "is_committed": stored.is_committed,
            "commit": stored.commit,
            "save_s": stored.save_s,
            "ocdbt": stored.ocdbt,
            "processes": stored.processes,
            "arrays": len(stored.arrays),
            "array_bytes": self.array_bytes,
            "value_bytes": self.value_bytes,
            "ratio": self.ratio,
            "files": self.inventory.file_count,
            "total_bytes": self.inventory.total_bytes,
            "kinds": {kind: found.files for kind, found in self.inventory.kinds.items()},
            "mesh": None if self.mesh is None else self.mesh.label,
            "unfit": list(self.unfit),
            "replicated_share": self.replicated_share,
            "siblings": list(stored.siblings),
            "sibling_ages_s": list(stored.siblings.values()),
            "problems": list(self.problems),
            "unloadable": list(stored.unloadable),
            "notes": list(stored.notes),
            "advice": list(self.advice),
        }


_MANY: Final = 2.0
_NO_GAIN: Final = 0.97
_LARGE_FILE: Final = 4 * 2**30
_HOST_COUNTS: Final = 8
_SIBLINGS: Final = 3


def inspect_checkpoint(
    path: str,
    *,
    mesh: str | None = None,
    devices_per_host: int | None = None,
    restore_limit: int | None = None,
) -> Inspection:
    """Looks at a checkpoint without loading an array.

    Args:
        path: Root of a checkpoint, the directory of one item or a safetensors model, local or
            gs://, finished or not, damaged or not.
        mesh: What it would be loaded onto, as `data=2,fsdp=4`; None for what it was saved from.
        devices_per_host: Devices of one process there; None for as they were, or all.
        restore_limit: Most bytes in flight while loading; None sets no limit.

    Raises:
        UserError: There is no checkpoint at the path, or the mesh cannot hold it.
    """
    from etils import epath

    stored = read_checkpoint(path)
    place = _mesh(stored, mesh, devices_per_host)
    inventory = take_inventory(epath.Path(stored.root))
    tree = _tree(stored)
    reads: tuple[HostReads, ...] = ()
    if place is not None and tree is not None and not stored.is_safetensors:
        reads = tuple(_reads(tree, place, restore_limit))
    return Inspection(
        stored=stored,
        inventory=inventory,
        mesh=place,
        unfit=() if place is None or tree is None else tuple(_unfit(tree, place)),
        replicated_share=_replicated(tree, reads[0]) if tree is not None and reads else None,
        reads=reads,
        problems=stored.problems,
        advice=tuple(_advice(stored, inventory, reads, restore_limit)),
    )


def _mesh(
    stored: StoredCheckpoint, mesh: str | None, devices_per_host: int | None
) -> plan.PlanMesh | None:
    if mesh is not None:
        return plan.read_mesh(mesh, devices_per_host)
    found = plan.saved_mesh(stored)
    if found is None or devices_per_host is None:
        return found
    return plan.read_mesh(found.label, devices_per_host)


def _tree(stored: StoredCheckpoint) -> plan.PlannedTree | None:
    """Returns the tree of a checkpoint; None if damage leaves no array of it."""
    try:
        return plan.tree_of_stored(stored)
    except UserError:
        return None


def _reads(tree: plan.PlannedTree, mesh: plan.PlanMesh, limit: int | None) -> Iterator[HostReads]:
    """Yields what hosts read for the mesh as it is, and for other numbers of hosts."""
    sizes = [mesh.devices_per_host]
    sizes += [size for size in _powers(mesh.num_devices) if size != mesh.devices_per_host]
    for size in sizes[:_HOST_COUNTS]:
        place = plan.PlanMesh(mesh.axes, mesh.sizes, size)
        if not place.is_aligned:
            continue
        reading = plan.read_cost([_read_array(tree, array, place) for array in tree.arrays], place)
        yield HostReads(mesh=place, reading=reading, memory=plan.load_bound(reading, limit))


def _powers(devices: int) -> list[int]:
    """Returns devices per host that make whole hosts: all of them, a half, a quarter, ..."""
    found = [devices]
    while found[-1] % 2 == 0:
        found.append(found[-1] // 2)
    return found


def _read_array(
    tree: plan.PlannedTree, array: plan.PlannedArray, mesh: plan.PlanMesh
) -> plan.ReadArray:
    spec = plan.onto(array, mesh)
    return plan.ReadArray(array.name, array.shape, array.itemsize, tree.saved[array.name], spec)


def _unfit(tree: plan.PlannedTree, mesh: plan.PlanMesh) -> Iterator[str]:
    """Yields the arrays whose shards on a mesh are no whole number of chunks."""
    for array in tree.arrays:
        spec = plan.onto(array, mesh)
        cut = zip(spec, mesh.shard(array.shape, spec), tree.saved[array.name], strict=False)
        if any(entry and shard % chunk for entry, shard, chunk in cut):
            yield array.name


def _replicated(tree: plan.PlannedTree, reads: HostReads) -> float | None:
    held = reads.reading.held * reads.mesh.num_hosts
    return 1 - tree.num_bytes / held if held else None


def _advice(
    stored: StoredCheckpoint, inventory: Inventory, reads: tuple[HostReads, ...], limit: int | None
) -> Iterator[str]:
    for name, age in itertools.islice(stored.siblings.items(), _SIBLINGS):
        yield (
            f"an unfinished save lies next to it, {name}, which last changed {seconds(age)} ago: "
            "it is still written, or its process has ended"
        )
    if (rest := len(stored.siblings) - _SIBLINGS) > 0:
        yield f"{rest} more unfinished saves lie next to it"
    if inventory.warning:
        yield inventory.warning
    if inventory.largest_data_bytes > _LARGE_FILE:
        yield (
            f"its largest data file has {num_bytes(inventory.largest_data_bytes)}: a smaller "
            "ocdbt_target_data_file_size lets more readers work at once"
        )
    yield from _on_compression(stored)
    if reads:
        yield from _on_reads(stored, reads[0], limit)


def _on_compression(stored: StoredCheckpoint) -> Iterator[str]:
    compressed = [a for a in stored.arrays if a.zarr and a.zarr.compressor]
    whole = [a for a in compressed if not (a.num_missing or a.is_scalar)]
    values = sum(array.num_bytes for array in whole)
    kept = sum(array.stored_bytes for array in whole)
    if values and kept / values > _NO_GAIN:
        yield (
            f"compression leaves {percent(kept / values, 1)} of the bytes: it costs time for "
            "nothing; save with use_compression: false"
        )


def _on_reads(stored: StoredCheckpoint, found: HostReads, limit: int | None) -> Iterator[str]:
    reading, mesh = found.reading, found.mesh
    yield from reading.failures(limit)
    if reading.most_ratio > _MANY:
        yield (
            f"hosts read up to {digits(reading.most_ratio)} times what they need onto "
            f"{mesh.label}: save smaller chunks (chunk_byte_size), or load onto the mesh it "
            "was saved from"
        )
    values = sum(array.num_bytes for array in stored.arrays)
    repeated = math.fsum(reading.need.tolist()) / values if values else 0.0
    if mesh.num_hosts > 1 and repeated > _MANY:
        yield (
            f"hosts together read {digits(repeated)} copies of it: use_load_and_broadcast reads "
            "one, where replicas are along one axis of the mesh"
        )


def by_writer(stored: StoredCheckpoint) -> Mapping[str, int]:
    """Returns the bytes of values by the OCDBT database of the process that wrote them."""
    found: dict[str, int] = {}
    for array in stored.arrays:
        for chunk in array.chunks:
            if chunk.file and stored.ocdbt:
                writer = chunk.file.partition("/")[0]
                found[writer] = found.get(writer, 0) + chunk.num_bytes
    return found
