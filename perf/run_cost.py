"""Saves of `orbax-bench run` beside those of a bare loop that writes over its last checkpoint.

`python -m perf.run_cost [--rounds N] [--kept]` runs both in turn, for 8 and 64 MiB, each time as
fresh processes, and prints the median seconds of a save of each and their ratio. `--kept` also
runs with `--keep-data`, which says what it costs that each save has memory of its own.

The loop is what a training job with `max_to_keep: 1` does between two steps: a save with the
options of the run, and the last checkpoint deleted. It saves the tree of the run, under the
allocator of a worker, and loads what it saved, as the run does, outside the clock.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from orbax_bench_core.measure import TIME
from orbax_bench_core.state import StateCache
from orbax_bench_core.sweep import allocator_settings
from perf.figure import end, paired_table
from perf.pairing import Figure
from perf.probe import Setting, say
from perf.process import FROM_SOURCE, our_command, printed, run
from perf.repeats import OPTIONS, saving_point, target_of

TARGET: Final = 1.05
SIZES: Final = (8, 64)
"""MiB of float32."""

_SAVES: Final = 20
_WARMUPS: Final = 1
_ENVIRONMENT: Final = {**FROM_SOURCE, "JAX_ENABLE_X64": "true"}
_OPERATION: Final = "save"


def figures(setting: Setting, *, kept: bool = False) -> list[Figure]:
    """Has a run and a loop save in turn."""
    return [_figure(setting, mib) for mib in SIZES] + [
        _figure(setting, mib, "--keep-data") for mib in SIZES if kept
    ]


def _figure(setting: Setting, mib: int, *flags: str) -> Figure:
    name = f"{mib} MiB save: {' '.join(('run', *flags))} over a bare loop"
    pairs = setting.pairs(name, lambda: _of_run(mib, flags), lambda: _of_loop(mib))
    # What is kept is shown for comparison: nothing limits it.
    target = float("inf") if flags else TARGET
    figure = pairs.figure(name, "ms", lambda seconds: 1e3 * seconds, target)
    say(f"{name}: {figure.ours} ms over {figure.upstream} ms")
    return figure


def _of_run(mib: int, flags: Sequence[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "suite.json"
        suite.write_text(json.dumps(_suite(mib)))
        how = ("--no-limits", "--quiet", *flags)
        run(
            our_command("run", str(suite), "-o", f"{folder}/run", *how),
            environment=_ENVIRONMENT,
            keep_output=True,
        )
        records = Path(folder).glob("run/records/*/repeat_*/host_0.json")
        return statistics.median(
            sample["value"]
            for record in records
            for sample in json.loads(record.read_text())["samples"]
            if (sample["operation"], sample["metric"]) == (_OPERATION, TIME)
        )


def _suite(mib: int) -> dict[str, Any]:
    return {
        "suite_name": "saves",
        "num_repeats": _SAVES,
        "execution": {"warmups": _WARMUPS},
        "checkpoint_config": {"spec": {"w": {"dtype": "float32", "shape": [mib, 2**18]}}},
        "benchmarks": [{"generator": "save_restore", "options": {}}],
    }


def _of_loop(mib: int) -> float:
    command = [sys.executable, "-m", "perf.run_cost", "--loop", str(mib)]
    return float(printed(command, {**_ENVIRONMENT, **allocator_settings("reused")}))


def save_again_and_again(mib: int) -> float:
    """Returns the median seconds of a save of so many MiB that writes over the last."""
    import jax
    from orbax.checkpoint import v1 as ocp

    point = saving_point(shape=(mib, 2**18))
    tree = StateCache().get(point.checkpoint, None, None).tree
    target = target_of(tree)
    taken = []
    with tempfile.TemporaryDirectory() as folder, OPTIONS().orbax_context():
        path = Path(folder) / "checkpoint"
        for _ in range(_WARMUPS + _SAVES):
            shutil.rmtree(path, ignore_errors=True)
            began = perf_counter()
            ocp.save_async(path, tree).result()
            taken.append(perf_counter() - began)
            jax.block_until_ready(ocp.load(path, target))
    return statistics.median(taken[_WARMUPS:])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the table, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="perf.run_cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="pairs (default 5)")
    parser.add_argument("--kept", action="store_true", help="also run with --keep-data")
    parser.add_argument("--loop", type=int, metavar="MIB", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.loop is not None:
        print(save_again_and_again(options.loop))
        return 0
    found = figures(Setting(rounds=options.rounds), kept=options.kept)
    return end(found, paired_table(found), file=None, plain=None)


if __name__ == "__main__":
    sys.exit(main())
