"""Influence of measuring on a save: saves under measurement beside the same saves, bare.

`python -m perf.save_cost` is the process that saves 64 MiB again and again, in turn with a bare
clock around, under the default collectors, and with a bare clock once more, in a random order; it
prints the median seconds of each as JSON. The ratio of bare to bare says how large a difference
means nothing. Every save has a fresh directory, removed outside all clocks.
"""

import json
import random
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Final

from orbax_bench_core.sweep import allocator_settings
from perf.pairing import Figure, milliseconds
from perf.probe import Setting
from perf.process import FROM_SOURCE, SIMULATED, printed

TARGET: Final = 1.02

_BARE: Final = "bare"
_BARE_AGAIN: Final = "bare again"
_MEASURED: Final = "measured"
_BYTES: Final = 64 * 2**20
_SAVES: Final = 60
_WARMUPS: Final = 3


def figures(setting: Setting) -> list[Figure]:
    """Has a process save in three ways in turn."""
    pairs, bare = setting.pairs("save", _in_a_process), milliseconds(_BARE)
    measured, again = (
        f"64 MiB save: {name}"
        for name in ("measured over bare", "bare over bare, which means nothing")
    )
    return [
        pairs.figure(measured, "ms", milliseconds(_MEASURED), TARGET, beside=bare),
        pairs.figure(again, "ms", milliseconds(_BARE_AGAIN), TARGET, beside=bare),
    ]


def _in_a_process() -> dict[str, float]:
    # As in a worker of ours: a heap that is kept spares the saves the noise of first touches.
    environment = {**FROM_SOURCE, **SIMULATED, **allocator_settings("reused")}
    taken: dict[str, float] = printed([sys.executable, "-m", "perf.save_cost"], environment)
    return taken


def save_in_turn() -> dict[str, float]:
    """Returns the median seconds of each way of timing."""
    import jax
    from orbax.checkpoint import v1 as ocp

    from orbax_bench_core.measure import Metrics

    # Normal numbers hardly compress.
    array = jax.random.normal(jax.random.key(0), (_BYTES // 4,), "float32")
    tree, rng = {"a": array.block_until_ready()}, random.Random(0)
    taken: dict[str, list[float]] = {_BARE: [], _BARE_AGAIN: [], _MEASURED: []}

    def bare(path: Path, name: str) -> None:
        began = perf_counter()
        ocp.save(path, tree)
        taken[name].append(perf_counter() - began)

    def measured(path: Path) -> None:
        metrics = Metrics()
        with metrics.measure("save", num_bytes=_BYTES):
            ocp.save(path, tree)
        taken[_MEASURED].append(metrics.results["save_0_basics/time_s"][0])

    ways: list[Callable[[Path], None]] = [
        lambda path: bare(path, _BARE),
        lambda path: bare(path, _BARE_AGAIN),
        measured,
    ]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(_WARMUPS + _SAVES):
            for way in rng.sample(ways, len(ways)):
                path = Path(folder) / "save"
                way(path)
                shutil.rmtree(path)
    return {name: statistics.median(times[_WARMUPS:]) for name, times in taken.items()}


if __name__ == "__main__":
    print(json.dumps(save_in_turn()))
