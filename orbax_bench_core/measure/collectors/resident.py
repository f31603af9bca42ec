"""The resident set size of this process."""

from __future__ import annotations

import functools
import mmap
import os
from typing import TYPE_CHECKING

from orbax_bench_core.measure.collectors import kernel_file

if TYPE_CHECKING:
    import psutil


def resident_bytes() -> int:
    """Bytes of memory that this process holds now, shared pages included."""
    pages = kernel_file.reader("/proc/self/statm")
    if pages is None:
        return _process(os.getpid()).memory_info().rss
    return int(pages(0).split(None, 2)[1]) * mmap.PAGESIZE


@functools.lru_cache(maxsize=1)
def _process(pid: int) -> psutil.Process:
    # By pid: a handle that a fork inherited would go on reading the parent.
    import psutil

    return psutil.Process(pid)
