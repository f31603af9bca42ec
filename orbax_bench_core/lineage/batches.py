"""Batches of a run in its lineage: what each step has named, and which steps left nothing."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Mapping
from typing import Final

from orbax_bench_core.files import ResultModel
from orbax_bench_core.lineage.batch_files import Batch, newest_batches, read_planned, write_batch
from orbax_bench_core.lineage.digests import PointRecords, file_digest, point_digests
from orbax_bench_core.records import RunDirectory

_AT_ONCE: Final = 16


class NotedBatch(ResultModel):
    """A batch, as `lineage.json` has it.

    Attributes:
        points: How many points it has; 0 where no plan says so.
        file: The file in which its step named it; empty when the step left none.
        digest: SHA-256 of that file; empty when there is none.
    """

    points: int
    file: str = ""
    digest: str = ""


def name_batch(run: RunDirectory, name: str, point_ids: list[str], status: str) -> str:
    """Names a batch in the run directory, with the digest of the records of each of its points."""
    digests = point_digests(run.root, point_ids)
    points = {point_id: digests[point_id].digest for point_id in point_ids if point_id in digests}
    batch = Batch(name=name, run_id=run.read_info().run_id, status=status, points=points)
    return str(write_batch(run.root, batch).relative_to(run.root))


def note_batches(run: RunDirectory) -> dict[str, NotedBatch]:
    """Returns every batch that was planned or named, by its name."""
    planned, files = read_planned(run.root), newest_batches(run.root)
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        digests = dict(zip(files, pool.map(file_digest, files.values()), strict=True))
    return {
        name: NotedBatch(
            points=len(planned.get(name, ())),
            file=str(files[name].relative_to(run.root)) if name in files else "",
            digest=digests.get(name, ""),
        )
        for name in dict.fromkeys([*planned, *files])
    }


def lost_batches(
    run: RunDirectory, points: Mapping[str, PointRecords]
) -> dict[str, tuple[str, ...]]:
    """Returns the planned batches that no step has named and whose points lack records."""
    planned, files = read_planned(run.root), newest_batches(run.root)
    lost = {
        name: tuple(point_id for point_id in ids if point_id not in points)
        for name, ids in planned.items()
        if name not in files
    }
    return {name: ids for name, ids in lost.items() if ids}
