"""Time and memory of synthetic data, against the upstream generator where there is one.

`python -m perf.data_generation [--upstream-python PATH]` makes 1 GiB of bfloat16 over eight
simulated CPU devices in a fresh process per round, the two generators in turn, and prints medians
and their ratios. Peak memory is VmHWM after less VmRSS before, so the arrays themselves are in it.
Then it prints how well zstd compresses each dtype (needs the `zstandard` package).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

_TARGET_TIME: Final = 1 / 5
_TARGET_MEMORY: Final = 1 / 3
_COLUMNS: Final = 32768

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

_COMPRESS: Final = """
import json
import numpy, zstandard
from orbax_bench_core.config import dtypes
from orbax_bench_core.config.checkpoint import ArraySpec
from orbax_bench_core.state.layout import NUMPY_ONLY
from orbax_bench_core.state.synthetic import generate
ratios = {}
for name in dtypes.BITS:
    if name not in NUMPY_ONLY:
        spec = {"w": ArraySpec(dtype=name, shape=(4 << 20,))}
        data = numpy.asarray(generate(spec, seed=0, mesh=None)["w"]).tobytes()
        ratios[name] = [len(data) / len(zstandard.compress(data, level)) for level in (1, 3)]
print(json.dumps(ratios))
"""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gibibytes", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--upstream-python", metavar="PATH", help="interpreter with the upstream")
    options = parser.parse_args()
    shape = [str(round(options.gibibytes * 2**30 / 2 / _COLUMNS)), str(_COLUMNS)]
    programs = {"ours": (sys.executable, _OURS)}
    if options.upstream_python:
        programs["upstream"] = (options.upstream_python, _UPSTREAM)
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
    for _ in range(options.rounds):
        for name, (python, code) in programs.items():
            rounds[name].append(_run(python, code, *shape))
    medians = {
        name: {
            field: statistics.median(result[field] for result in results)
            for field in ("seconds", "bytes")
        }
        for name, results in rounds.items()
    }
    print(f"{options.gibibytes:g} GiB of bfloat16, median of {options.rounds}")
    for name, median in medians.items():
        print(f"  {name:9} {median['seconds']:7.2f} s  {median['bytes'] / 2**20:8.0f} MiB more")
    if "upstream" in medians:
        ours, upstream = medians["ours"], medians["upstream"]
        time, memory = (ours[field] / upstream[field] for field in ("seconds", "bytes"))
        print(f"  time      {time:7.3f} of upstream's (target {_TARGET_TIME:.3f})")
        print(f"  memory    {memory:7.3f} of upstream's (target {_TARGET_MEMORY:.3f})")
    print("zstd ratio    -1     -3")
    for name, (fast, default) in _run(sys.executable, _COMPRESS).items():
        print(f"  {name:20} {fast:6.3f} {default:6.3f}")


def _run(python: str, code: str, *arguments: str) -> Any:
    root = str(Path(__file__).resolve().parents[1])
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "true",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "PYTHONPATH": root,
    }
    done = subprocess.run(
        [python, "-c", code, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
