"""Influence of measuring on a save: saves under measurement beside the same saves, bare.

One process saves 64 MiB again and again, in turn with a bare clock around, under the default
collectors, and with a bare clock once more, in a random order. The ratios of bare to bare say how
large a difference means nothing. Every save has a fresh directory, removed outside all clocks.
"""

from __future__ import annotations

import math
import random
import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, Final

TIME: Final = "0_basics/time_s"
SAVE_BYTES: Final = 64 * 2**20
# As in a worker of ours: a heap that is kept spares the saves the noise of first touches.
KEEP_HEAP: Final = {
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=4294967295"
    ":glibc.malloc.trim_threshold=9999999999:glibc.malloc.arena_max=1"
}

_BARE: Final = "bare"
_BARE_AGAIN: Final = "bare again"
_MEASURED: Final = "measured"
_WHOLE: Final = "measured, whole block"
_WARMUPS: Final = 3


def tree() -> Any:
    """64 MiB of normal numbers, which hardly compress, ready on the device."""
    import jax

    array = jax.random.normal(jax.random.key(0), (SAVE_BYTES // 4,), "float32")
    return {"a": array.block_until_ready()}


def save_in_turn(pairs: int) -> dict[str, list[float]]:
    """Saves three ways in turn.

    Args:
        pairs: How often to keep the times of each way, after some that are thrown away.

    Returns:
        Seconds by way of timing, in the order in which they were taken.
    """
    from orbax.checkpoint import v1 as ocp

    from orbax_bench_core.measure import Metrics

    data, rng = tree(), random.Random(0)
    taken: dict[str, list[float]] = {_BARE: [], _BARE_AGAIN: [], _MEASURED: [], _WHOLE: []}

    def bare(path: Path, name: str) -> None:
        began = perf_counter()
        ocp.save(path, data)
        taken[name].append(perf_counter() - began)

    def measured(path: Path) -> None:
        metrics = Metrics()
        began = perf_counter()
        with metrics.measure("save", num_bytes=SAVE_BYTES):
            ocp.save(path, data)
        taken[_WHOLE].append(perf_counter() - began)
        taken[_MEASURED].append(metrics.results[f"save_{TIME}"][0])

    ways: list[Callable[[Path], None]] = [
        lambda path: bare(path, _BARE),
        lambda path: bare(path, _BARE_AGAIN),
        measured,
    ]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(_WARMUPS + pairs):
            for way in rng.sample(ways, len(ways)):
                path = Path(folder) / "save"
                way(path)
                shutil.rmtree(path)
    return {name: times[_WARMUPS:] for name, times in taken.items()}


def print_ratios(taken: dict[str, list[float]]) -> None:
    """Prints the ratios of each way of timing to the bare one, paired by round."""
    bare = taken[_BARE]
    print(f"64 MiB save, {len(bare)} pairs; bare: median {statistics.median(bare) * 1e3:.1f} ms")
    for name, meaning in (
        (_MEASURED, f"{TIME} under the default collectors"),
        (_WHOLE, "the whole measured block, collectors included"),
        (_BARE_AGAIN, "a bare save again: what means nothing"),
    ):
        ratios = [a / b for a, b in zip(taken[name], bare, strict=True)]
        low, high = interval_of_median(ratios)
        medians = statistics.median(taken[name]) / statistics.median(bare)
        print(
            f"  {meaning}: median ratio {statistics.median(ratios):.4f} "
            f"(95 % interval {low:.4f} to {high:.4f}), ratio of medians {medians:.4f}"
        )


def interval_of_median(values: list[float]) -> tuple[float, float]:
    """A 95 % interval of the median, free of any assumption on the distribution.

    It reaches from the k-th smallest to the k-th largest value, with the largest k for which fewer
    than k of n tosses of a fair coin show heads with a probability of at most 2.5 % (the sign test
    turned round).

    Args:
        values: At least 6, or no such k exists.
    """
    ordered, n = sorted(values), len(values)
    below, k = 0.0, 0
    while below + math.comb(n, k) / 2**n <= 0.025:
        below += math.comb(n, k) / 2**n
        k += 1
    return ordered[k - 1], ordered[n - k]
