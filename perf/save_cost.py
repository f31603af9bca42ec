"""Influence of measuring on a save: saves under measurement beside the same saves, bare.

`python -m perf.save_cost` is the process that saves 64 MiB again and again, in turn with a bare
clock around, under the default collectors, and with a bare clock once more, in a random order; it
prints the median seconds of each as JSON. The ratio of bare to bare says how large a difference
means nothing. Every save has a fresh directory, removed outside all clocks.
"""

from __future__ import annotations

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

from perf.pairing import Figure, alternate
from perf.probe import Setting
from perf.process import ROOT, SIMULATED, run

TARGET: Final = 1.02
# As in a worker of ours: a heap that is kept spares the saves the noise of first touches.
KEEP_HEAP: Final = {
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=4294967295"
    ":glibc.malloc.trim_threshold=9999999999:glibc.malloc.arena_max=1"
}

_BARE: Final = "bare"
_BARE_AGAIN: Final = "bare again"
_MEASURED: Final = "measured"
_BYTES: Final = 64 * 2**20
_SAVES: Final = 60
_WARMUPS: Final = 3


def figures(setting: Setting) -> list[Figure]:
    """Has a process save in three ways in turn."""
    pairs = alternate(
        setting.rounds, _in_a_process, None, say=lambda line: setting.say(f"save: {line}")
    )
    found = []
    for way, name in (
        (_MEASURED, "64 MiB save: measured over bare"),
        (_BARE_AGAIN, "64 MiB save: bare over bare, which means nothing"),
    ):
        ours, _ = pairs.values(lambda taken, way=way: 1e3 * taken[way])
        bare, _ = pairs.values(lambda taken: 1e3 * taken[_BARE])
        found.append(
            Figure(name=name, unit="ms", ours=ours, upstream=bare, target=TARGET, limits="ratio")
        )
    return found


def _in_a_process() -> dict[str, float]:
    environment = {**SIMULATED, "PYTHONPATH": str(ROOT), **KEEP_HEAP}
    done = run([sys.executable, "-m", "perf.save_cost"], environment=environment, keep_output=True)
    taken: dict[str, float] = json.loads(done.output.splitlines()[-1])
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
