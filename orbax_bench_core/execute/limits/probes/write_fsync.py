"""Writing files, one per thread, until they are on stable storage."""

from __future__ import annotations

import functools

from orbax_bench_core.execute.limits import files
from orbax_bench_core.execute.limits.clock import repeated, timed
from orbax_bench_core.execute.limits.workload import Workload


def write_fsync(workload: Workload) -> list[float]:
    """Times sequential writes with fsync of each file and its folder, as Orbax has them synced.

    Each repeat writes new files; those of the last one stay for the probes that read.

    Returns:
        Seconds of each repeat.

    Raises:
        OSError: The disk is full, or cannot be written.
    """

    def once() -> float:
        files.make_empty(files.folder(workload))
        return timed(
            [
                functools.partial(files.write, path, piece)
                for path, piece in zip(files.paths(workload), workload.pieces, strict=True)
            ]
        )

    return repeated(workload.repeats, once)
