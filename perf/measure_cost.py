"""Cost of an empty measured block, beside Orbax's own benchmark framework.

`python perf/measure_cost.py ours` or `upstream` is the process in which blocks are measured, with
an interpreter that has that side; it prints means as JSON. The framework logs at INFO, as its
runner does, to a stderr that is discarded.
"""

import importlib
import json
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

from perf.pairing import Figure
from perf.probe import Setting
from perf.process import FROM_SOURCE, ROOT, SIMULATED, printed

COST_TARGET: Final = 0.2
OWN_TIME_TARGET_US: Final = 10.0

_OURS, _UPSTREAM = "ours", "upstream"
_MODULES: Final = {
    _OURS: "orbax_bench_core.measure",
    _UPSTREAM: "orbax.checkpoint._src.testing.benchmarks.core.metric",
}
_BLOCKS: Final = 300
_TIME: Final = "0_basics/time_s"


def figures(setting: Setting) -> list[Figure]:
    """Measures what an empty block costs, and what it takes for its own time."""
    upstream = setting.upstream
    pairs = setting.pairs(
        "measure",
        lambda: _in_a_process(sys.executable, _OURS),
        None if upstream is None else lambda: _in_a_process(upstream.python, _UPSTREAM),
    )
    return [
        pairs.figure(
            "empty measure(): mean cost", "µs", lambda found: 1e6 * found["cost"], COST_TARGET
        ),
        pairs.figure("empty measure(): CPU", "µs", lambda found: 1e6 * found["cpu"], COST_TARGET),
        pairs.figure(
            "empty measure(): its own time_s",
            "µs",
            lambda found: 1e6 * found["own time"],
            OWN_TIME_TARGET_US,
            limits="value",
        ),
    ]


def _in_a_process(python: str, side: str) -> dict[str, float]:
    command = [python, str(ROOT / "perf" / "measure_cost.py"), side]
    found: dict[str, float] = printed(command, {**FROM_SOURCE, **SIMULATED})
    return found


def _measure(side: str) -> dict[str, float]:
    """Returns the mean cost of an empty block, of its CPU, and the mean time that it reports."""
    import jax.numpy as jnp
    from orbax.checkpoint import v1 as ocp

    if side == _UPSTREAM:
        absl_logging: Any = importlib.import_module("absl.logging")
        absl_logging.use_absl_handler()
        absl_logging.set_verbosity(absl_logging.INFO)
    metrics_class = importlib.import_module(_MODULES[side]).Metrics
    # Then TensorStore has metrics to report in each block.
    with tempfile.TemporaryDirectory() as folder:
        ocp.save(Path(folder) / "save", {"a": jnp.zeros(2**20)})
    costs: list[float] = []
    cpu: list[float] = []
    times: list[float] = []
    for _ in range(_BLOCKS):
        one = metrics_class()
        began, spent = perf_counter(), process_time()
        with one.measure("op"):
            pass
        costs.append(perf_counter() - began)
        cpu.append(process_time() - spent)
        times += [value for key, (value, _) in one.results.items() if key.endswith(_TIME)]
    found = {"cost": costs, "cpu": cpu, "own time": times}
    return {name: statistics.fmean(values[1:]) for name, values in found.items()}


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1])))
