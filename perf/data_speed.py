"""CPU time of making and digesting data, over copies of as many bytes in memory.

`python -m perf.data_speed` is the process in which they alternate; it prints what each took as
JSON. Its heap keeps freed memory, as that of a worker with `host_memory: reused`, so that nothing
has to be touched for the first time: neither by us nor by the copy.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Final

from perf.pairing import Figure, Pairs, alternate
from perf.probe import Setting
from perf.process import ROOT, run
from perf.save_cost import KEEP_HEAP

GENERATE_TARGET: Final = 4.0
DIGEST_TARGET: Final = 2.0

GENERATE: Final = "generate"
DIGEST: Final = "digest"
COPY: Final = "copy"

_BYTES: Final = 64 << 20
_COLUMNS: Final = 4096
_TURNS: Final = 9


def figures(setting: Setting) -> list[Figure]:
    """Has a process make, digest and copy bfloat16 in turn."""
    found = alternate(
        setting.rounds, _in_turn, None, say=lambda line: setting.say(f"data speed: {line}")
    )
    sides = Pairs(ours=found.ours, upstream=found.ours)
    figures = []
    for name, title, target in (
        (GENERATE, "64 MiB of bfloat16: make over copy, CPU", GENERATE_TARGET),
        (DIGEST, "64 MiB of bfloat16: digest over copy, CPU", DIGEST_TARGET),
    ):
        ours, _ = sides.values(lambda taken, name=name: 1e3 * taken[name])
        _, copied = sides.values(lambda taken: 1e3 * taken[COPY])
        figures.append(
            Figure(name=title, unit="ms", ours=ours, upstream=copied, target=target, limits="ratio")
        )
    return figures


def take_turns() -> dict[str, float]:
    """Returns the median CPU seconds of each, all threads of the process included."""
    import jax
    import numpy as np

    from orbax_bench_core.config import ArraySpec
    from orbax_bench_core.state import digest, generate

    spec = {"w": ArraySpec(dtype="bfloat16", shape=(_BYTES // 2 // _COLUMNS, _COLUMNS))}
    tree = generate(spec, seed=0, mesh=None)
    source, target = np.ones(_BYTES, np.uint8), np.zeros(_BYTES, np.uint8)
    sides: dict[str, Callable[[], object]] = {
        GENERATE: lambda: jax.block_until_ready(generate(spec, seed=1, mesh=None)),
        DIGEST: lambda: digest(tree),
        COPY: lambda: np.copyto(target, source),
    }
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(1 + _TURNS):
        for name, side in sides.items():
            began = time.process_time()
            side()
            taken[name].append(time.process_time() - began)
    return {name: statistics.median(values[1:]) for name, values in taken.items()}


def _in_turn() -> dict[str, float]:
    """Runs this module as a program."""
    environment = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), **KEEP_HEAP}
    done = run([sys.executable, "-m", "perf.data_speed"], environment=environment, keep_output=True)
    taken: dict[str, float] = json.loads(done.output.splitlines()[-1])
    return taken


if __name__ == "__main__":
    print(json.dumps(take_turns()))
