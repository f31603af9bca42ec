"""Time and memory of synthetic data, against the upstream generator where there is one.

A fresh process makes 1 GiB of bfloat16 over eight simulated CPU devices. Peak memory is VmHWM after
less VmRSS before, so the arrays themselves are in it.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from perf.pairing import Figure, alternate
from perf.probe import Setting
from perf.process import ROOT, SIMULATED, run

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
    pairs = alternate(
        setting.rounds,
        lambda: _make(sys.executable, _OURS),
        None if upstream is None else lambda: _make(upstream.python, _UPSTREAM),
        say=lambda line: setting.say(f"data: {line}"),
    )
    seconds, their_seconds = pairs.values(lambda made: made["seconds"])
    memory, their_memory = pairs.values(lambda made: made["bytes"] / 2**20)
    return [
        Figure(
            name="1 GiB of data: time",
            unit="s",
            ours=seconds,
            upstream=their_seconds,
            target=TIME_TARGET,
            limits="ratio",
        ),
        Figure(
            name="1 GiB of data: extra peak memory",
            unit="MiB",
            ours=memory,
            upstream=their_memory,
            target=MEMORY_TARGET,
            limits="ratio",
        ),
    ]


def _make(python: str, code: str) -> dict[str, float]:
    environment = {**SIMULATED, "JAX_ENABLE_X64": "true", "PYTHONPATH": str(ROOT)}
    done = run([python, "-c", code, *_SHAPE], environment=environment, keep_output=True)
    made: dict[str, float] = json.loads(done.output.splitlines()[-1])
    return made
