"""Reading arrays with TensorStore, without Orbax."""

from __future__ import annotations

from pathlib import Path

from orbax_bench_core.config.execution import Cache
from orbax_bench_core.execute import page_cache
from orbax_bench_core.execute.limits import files, raw_tensorstore
from orbax_bench_core.execute.limits.clock import repeated, timed
from orbax_bench_core.execute.limits.workload import Workload


def tensorstore_read(workload: Workload, *, compressed: bool, cache: Cache) -> list[float]:
    """Times opening an array and reading all its chunks at once.

    Args:
        workload: What to read.
        compressed: Whether the chunks are compressed as Orbax does by default.
        cache: State of the page cache before each repeat; an object store's data is never in it.

    Returns:
        Seconds of each repeat.

    Raises:
        StaysResident: `cache` is cold and the pages cannot be dropped.
        ValueError: TensorStore cannot read or write there.
    """
    folder = raw_tensorstore.folder(workload, compressed=compressed)
    if not folder.exists():
        raw_tensorstore.write(workload, compressed=compressed)

    def once() -> float:
        if "://" not in str(folder):
            if cache == "cold":
                files.make_cold(Path(folder))
            else:
                page_cache.fill(Path(folder))
        return timed([lambda: raw_tensorstore.read(workload, compressed=compressed)])

    return repeated(workload.repeats, once)
