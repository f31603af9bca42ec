"""CPU time of making and digesting data, over copies of as many bytes in memory.

`python -m perf.data_speed` is the process in which they alternate; it prints what each took as
JSON. Its heap keeps freed memory, as that of a worker with `host_memory: reused`, so that nothing
has to be touched for the first time: neither by us nor by the copy.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Final

from orbax_bench_core.sweep import allocator_settings
from perf.pairing import Figure, milliseconds
from perf.probe import Setting
from perf.process import FROM_SOURCE, printed

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
    pairs, copy = setting.pairs("data speed", _in_turn), milliseconds(COPY)
    make, digest = (f"64 MiB of bfloat16: {what} over copy, CPU" for what in ("make", "digest"))
    return [
        pairs.figure(make, "ms", milliseconds(GENERATE), GENERATE_TARGET, beside=copy),
        pairs.figure(digest, "ms", milliseconds(DIGEST), DIGEST_TARGET, beside=copy),
    ]


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
    command = [sys.executable, "-m", "perf.data_speed"]
    taken: dict[str, float] = printed(command, {**FROM_SOURCE, **allocator_settings("reused")})
    return taken


if __name__ == "__main__":
    print(json.dumps(take_turns()))
