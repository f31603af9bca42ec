"""Memory that a repeat with verification needs over the bytes of its checkpoint, if it is scarce.

The checkpoint is one array, which is the worst case: all of it is read, decoded and kept at once.
"""

import sys
from typing import Final

from perf.pairing import Figure
from perf.probe import Setting
from perf.process import FROM_SOURCE, run

TARGET: Final = 2.5
"""24 GiB hold 9.5 GiB of checkpoint, and a quarter of a GiB of libraries."""

_MIB: Final = 384

_REPEATS: Final = 3

_PROGRAM: Final = """
import sys, tempfile
from pathlib import Path
from orbax_bench_core.state import tree
from perf import repeats
tree.free_memory_bytes = lambda: 0  # as where the checkpoint is as large as fits
count, rows = map(int, sys.argv[1:])
with tempfile.TemporaryDirectory() as folder:
    repeats.perform([repeats.saving_point(shape=(rows, 512))] * count, Path(folder))
"""


def figures(setting: Setting) -> list[Figure]:
    """Has workers save, load and verify a checkpoint as if it hardly fitted."""
    name = "verified save and load where memory is scarce: memory over bytes"
    return [setting.pairs("memory", _factor).figure(name, "x", float, TARGET, limits="value")]


def _factor() -> float:
    """Returns the peak beyond that of a worker with a tiny checkpoint, over the bytes."""
    tiny, large = (_peak_bytes(count, rows) for count, rows in ((1, 1), (_REPEATS, 512 * _MIB)))
    return (large - tiny) / (_MIB << 20)


def _peak_bytes(count: int, rows: int) -> int:
    command = [sys.executable, "-c", _PROGRAM, str(count), str(rows)]
    return run(command, environment=FROM_SOURCE).peak_bytes
