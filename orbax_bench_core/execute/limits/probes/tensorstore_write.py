"""Writing arrays with TensorStore, without Orbax."""

from __future__ import annotations

from orbax_bench_core.execute.limits import raw_tensorstore
from orbax_bench_core.execute.limits.clock import repeated, timed
from orbax_bench_core.execute.limits.workload import Workload


def tensorstore_write(workload: Workload, *, compressed: bool) -> list[float]:
    """Times the creation of an array, one chunk per piece, until it is on stable storage.

    Each repeat writes a new array; the last one stays for the probes that read.

    Args:
        workload: What to write, and where.
        compressed: Whether chunks are compressed as Orbax does by default.

    Returns:
        Seconds of each repeat.

    Raises:
        ValueError: TensorStore cannot write there, or not this dtype.
    """
    folder = raw_tensorstore.folder(workload, compressed=compressed)

    def once() -> float:
        if folder.exists():
            folder.rmtree()
        return timed([lambda: raw_tensorstore.write(workload, compressed=compressed)])

    return repeated(workload.repeats, once)
