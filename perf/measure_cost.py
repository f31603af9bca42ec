"""Cost of a measured block, beside Orbax's own benchmark framework.

`python -m perf.measure_cost [--upstream-python PATH]`
`python -m perf.measure_cost --save [--pairs N]`

The first form prints a table of what blocks cost. Every figure comes from fresh processes that
alternate between the sides, so that a busy machine slows both; compare ratios, not microseconds.
PATH is an interpreter that has orbax-checkpoint with its benchmarks, clu and TensorFlow. There the
framework is measured twice: logging at INFO, as its runner does, and quiet. What is logged goes to
a discarded stderr. The second form asks whether measuring slows a save: see `perf.save_cost`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from perf import save_cost

Figures = dict[str, list[float]]

OURS, UPSTREAM, QUIET = "ours", "upstream", "upstream-quiet"
UPSTREAM_MODULE = "orbax.checkpoint._src.testing.benchmarks.core.metric"
SAVE = "save"
# The collectors that both sides have.
COLLECTORS = ("time", "rss", "jax_monitoring", "device_memory", "tensorstore", "tracemalloc")
BLOCKS = 300
SAVES = 5
LIVE_ARRAYS = 5000
TIME = save_cost.TIME


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upstream-python", help="interpreter that can import Orbax's benchmarks")
    parser.add_argument("--rounds", type=int, default=3, help="processes per side")
    parser.add_argument("--save", action="store_true", help="compare measured saves with bare ones")
    parser.add_argument("--pairs", type=int, default=60, help="of saves (at least 20)")
    sides = (OURS, UPSTREAM, QUIET, SAVE)
    parser.add_argument("--worker", choices=sides, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.pairs < 20:
        parser.error(f"--pairs is {arguments.pairs}; a median of fewer than 20 says too little")
    if arguments.worker == SAVE:
        print(json.dumps(save_cost.save_in_turn(arguments.pairs)))
        return
    if arguments.worker:
        print(json.dumps(_measure_all(arguments.worker)))
        return
    if arguments.save:
        load_before = os.getloadavg()
        figures = _run(sys.executable, SAVE, "--pairs", str(arguments.pairs), **save_cost.KEEP_HEAP)
        save_cost.print_ratios(figures)
        print(f"load average before {load_before}, after {os.getloadavg()}")
        return
    interpreters = {OURS: sys.executable}
    if arguments.upstream_python and _can_import(arguments.upstream_python):
        interpreters |= {UPSTREAM: arguments.upstream_python, QUIET: arguments.upstream_python}
    rounds = [
        {side: _run(python, side) for side, python in interpreters.items()}
        for _ in range(arguments.rounds)
    ]
    _print_table(rounds)


def _metrics_class(side: str) -> Callable[[], Any]:
    if side == OURS:
        from orbax_bench_core.measure import Metrics

        return Metrics
    absl_logging = importlib.import_module("absl.logging")
    absl_logging.use_absl_handler()
    absl_logging.set_verbosity(absl_logging.INFO if side == UPSTREAM else absl_logging.ERROR)
    metrics: Callable[[], Any] = importlib.import_module(UPSTREAM_MODULE).Metrics
    return metrics


def _measure_all(side: str) -> Figures:
    import jax.numpy as jnp

    metrics = _metrics_class(side)
    collectors: tuple[str, ...] = COLLECTORS
    if side == OURS:
        from orbax_bench_core.measure.collectors import KEYS

        collectors = KEYS
    figures = _save(metrics)  # first, so that TensorStore has metrics to report in all the rest
    for label, keys in (("default", None), *((key, [key]) for key in collectors)):
        figures |= _empty(metrics, label, keys)
    figures |= _nested(metrics)
    arrays = [jnp.full((), index) for index in range(LIVE_ARRAYS)]
    figures |= _empty(metrics, f"default, {len(arrays)} live arrays", None)
    return figures


def _empty(metrics: Callable[[], Any], label: str, keys: list[str] | None) -> Figures:
    costs: list[float] = []
    times: list[float] = []
    for _ in range(BLOCKS):
        one = metrics()
        began = perf_counter()
        with one.measure("op", keys):
            pass
        costs.append(perf_counter() - began)
        times += _times(one)
    cost = {f"cost of an empty block: {label}": costs[1:]}
    return cost | ({f"its {TIME}": times[1:]} if label == "default" else {})


def _nested(metrics: Callable[[], Any]) -> Figures:
    found: list[list[float]] = []
    for _ in range(BLOCKS // 3):
        one = metrics()
        with one.measure("outer"), one.measure("middle"), one.measure("inner"):
            pass
        found.append(_times(one))
    names = ("inner", "middle", "outer")
    return {
        f"{TIME} of three nested: {name}": list(times)
        for name, times in zip(names, zip(*found[1:], strict=True), strict=True)
    }


def _save(metrics: Callable[[], Any]) -> Figures:
    from orbax.checkpoint import v1 as ocp

    tree = save_cost.tree()
    shares: list[float] = []
    excesses: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for index in range(SAVES + 1):
            one = metrics()
            entered = perf_counter()
            with one.measure("save"):
                began = perf_counter()
                ocp.save(Path(folder) / str(index), tree)
                took = perf_counter() - began
            whole = perf_counter() - entered
            shares.append((whole - took) / whole)
            excesses.append(_times(one)[0] - took)
    return {
        "64 MiB save: share of the wall time that is measuring (fraction)": shares[1:],
        f"64 MiB save: {TIME} beyond the save itself": excesses[1:],
    }


def _times(metrics: Any) -> list[float]:
    return [value for key, (value, _) in metrics.results.items() if key.endswith(TIME)]


def _can_import(python: str) -> bool:
    command = [python, "-c", f"import {UPSTREAM_MODULE}"]
    found = subprocess.run(command, env=_environment(), capture_output=True, check=False)
    if found.returncode:
        logging.warning("%s cannot import %s; measuring ours alone", python, UPSTREAM_MODULE)
    return found.returncode == 0


def _run(python: str, side: str, *arguments: str, **environment: str) -> Figures:
    done = subprocess.run(
        [python, str(Path(__file__).resolve()), "--worker", side, *arguments],
        env=_environment() | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    figures: Figures = json.loads(done.stdout)
    return figures


def _environment() -> dict[str, str]:
    simulated = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    root = str(Path(__file__).resolve().parents[1])
    return {**os.environ, **simulated, "PYTHONPATH": root}


def _print_table(rounds: list[dict[str, Figures]]) -> None:
    sides = list(rounds[0])
    print(f"microseconds: mean / median / p99 over {len(rounds)} processes per side; x = ours / it")
    for label in rounds[0][OURS]:
        print(label)
        scale = 1 if "fraction" in label else 1e6
        for side in sides:
            if label not in rounds[0][side]:
                continue
            values = [value * scale for sides in rounds for value in sides[side][label]]
            p99 = statistics.quantiles(values, n=100, method="inclusive")[98]
            mean, median = statistics.fmean(values), statistics.median(values)
            ratio = "" if side == OURS else f"   x {_ratio(rounds, side, label):.4f} of means"
            print(f"  {side:15} {mean:10.4g} / {median:10.4g} / {p99:10.4g}{ratio}")


def _ratio(rounds: list[dict[str, Figures]], side: str, label: str) -> float:
    return statistics.median(
        statistics.fmean(sides[OURS][label]) / statistics.fmean(sides[side][label])
        for sides in rounds
    )


if __name__ == "__main__":
    main()
