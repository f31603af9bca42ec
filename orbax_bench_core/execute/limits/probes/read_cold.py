"""Reading files that are on storage alone."""

from __future__ import annotations

import functools

from orbax_bench_core.execute.limits import files
from orbax_bench_core.execute.limits.clock import repeated, timed
from orbax_bench_core.execute.limits.workload import Workload


def read_cold(workload: Workload) -> list[float]:
    """Times sequential reads, one file per thread, into memory that is in use already.

    Returns:
        Seconds of each repeat.

    Raises:
        StaysResident: The files' pages cannot be dropped.
        OSError: The files cannot be written or read.
    """
    files.ensure_written(workload)

    def once() -> float:
        files.make_cold(files.folder(workload))
        return timed(
            [
                functools.partial(files.read, path, buffer)
                for path, buffer in zip(files.paths(workload), workload.buffers, strict=True)
            ]
        )

    return repeated(workload.repeats, once)
