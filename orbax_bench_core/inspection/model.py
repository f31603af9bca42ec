"""Inspection of a checkpoint: what its files say, and what a load onto a mesh would take."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core.inventory import Inventory, StoredCheckpoint
from orbax_bench_core.plan import PlanMesh, ReadCost

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

    mesh: PlanMesh
    reading: ReadCost
    memory: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A checkpoint that was looked at, without a value of its arrays.

    Attributes:
        stored: What its files say.
        inventory: Its files by kind.
        mesh: The mesh that it would be loaded onto; None where nothing tells.
        unfit: Arrays whose chunks do not end where the shards of that mesh do.
        replicated_share: Share of all device memory there that holds another copy.
        reads: What hosts read, for several numbers of them; the first is that of the mesh.
        problems: What is wrong with it; empty where nothing was found.
        advice: What could be better.
    """

    stored: StoredCheckpoint
    inventory: Inventory
    mesh: PlanMesh | None
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
            "problems": list(self.problems),
            "advice": list(self.advice),
        }
