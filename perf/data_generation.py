"""Time and memory of synthetic data, against the upstream generator where there is one.

A fresh process makes 1 GiB of bfloat16 over eight simulated CPU devices. Peak memory is VmHWM after
less VmRSS before, so the arrays themselves are in it.
"""

import sys
from typing import Final

from perf.pairing import Figure
from perf.probe import Setting
from perf.process import FROM_SOURCE, SIMULATED, printed

TIME_TARGET: Final = 1 / 5
MEMORY_TARGET: Final = 1 / 3

_SHAPE: Final = ("16384", "32768")

_MEASURE: Final = """
import json, sys, time
import jax, numpy
mesh = jax.sharding.Mesh(numpy.array(jax.devices()), ("x",))
shape = [int(sys.argv[1]), int(sys.argv[2])]
def status(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
{imports}
before, start = status("VmRSS"), time.perf_counter()
tree = {make}
jax.block_until_ready(tree)
seconds = time.perf_counter() - start
print(json.dumps({{"seconds": seconds, "bytes": status("VmHWM") - before}}))
"""

_OURS: Final = _MEASURE.format(
    imports="""
from orbax_bench_core.config.checkpoint import ArraySpec
from orbax_bench_core.state.synthetic import generate
spec = {"w": ArraySpec(dtype="bfloat16", shape=tuple(shape), sharding=("x",))}
""",
    make="generate(spec, seed=0, mesh=mesh)",
)

_UPSTREAM: Final = _MEASURE.format(
    imports="""
from orbax.checkpoint._src.testing.benchmarks.core import checkpoint_generation, configs
spec = {"w": {"dtype": "bfloat16", "shape": shape, "sharding": ["x"]}}
config = configs.CheckpointConfig(spec=spec)
""",
    make="checkpoint_generation.generate_checkpoint(config, mesh=mesh)",
)


def figures(setting: Setting) -> list[Figure]:
    """Measures time and extra memory of one gibibyte of bfloat16."""
    upstream = setting.upstream
    pairs = setting.pairs(
        "data",
        lambda: _make(sys.executable, _OURS),
        None if upstream is None else lambda: _make(upstream.python, _UPSTREAM),
    )
    extra = "1 GiB of data: extra peak memory"
    return [
        pairs.figure("1 GiB of data: time", "s", lambda made: made["seconds"], TIME_TARGET),
        pairs.figure(extra, "MiB", lambda made: made["bytes"] / 2**20, MEMORY_TARGET),
    ]


def _make(python: str, code: str) -> dict[str, float]:
    environment = {**FROM_SOURCE, **SIMULATED, "JAX_ENABLE_X64": "true"}
    made: dict[str, float] = printed([python, "-c", code, *_SHAPE], environment)
    return made
