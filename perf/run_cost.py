"""Saves of `orbax-bench run` and `ab` beside those of a bare loop.

`python -m perf.run_cost [--rounds N] [--kept] [--unsynced] [--mib N]` runs the three in turn, for 8
and 64 MiB, each time as fresh processes, and prints the median seconds and CPU seconds of a save of
each and their ratios. `--kept` also runs with `--keep-data`, which says what it costs that each
save has memory of its own; `--unsynced` also has a loop that does not wait until nothing is left to
write, which says what that wait is worth to a save.

Last, a worker saves in turn as a repeat and as a bare save of the same tree in its own process,
which leaves out what two processes differ in: the CPU time of the two is compared.

The loop is what a training job with `max_to_keep: 1` does between two steps: a save with the
options of the run, the last checkpoint deleted, and nothing left to write, since steps take longer
than that. It saves the tree of the run, under the allocator of a worker, and loads what it saved,
as the run does, outside the clock.
"""

import argparse
import functools
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final, Literal

from orbax_bench_core import authoring
from orbax_bench_core.measure import TIME, Metrics
from orbax_bench_core.state import StateCache
from orbax_bench_core.sweep import allocator_settings
from perf.figure import end, paired_table
from perf.pairing import Figure, milliseconds
from perf.probe import Setting
from perf.process import FROM_SOURCE, our_command, printed, run
from perf.repeats import OPTIONS, perform, point_of, saving_point, target_of

TARGET: Final = 1.05
SIZES: Final = (8, 64)
"""MiB of float32."""

CPU: Final = "0_basics/cpu_s"

Command = Literal["run", "ab"]

_SAVES: Final = 20
_TURNS: Final = 40
_PROGRAM: Final = (
    "import json; from perf import run_cost; print(json.dumps(run_cost.save_in_turn({}, {})))"
)
_WARMUPS: Final = 1
_ENVIRONMENT: Final = {**FROM_SOURCE, "JAX_ENABLE_X64": "true"}
_OPERATION: Final = "save"
_LOOP: Final = "a bare loop"


def figures(
    setting: Setting,
    *,
    sizes: Sequence[int] = SIZES,
    kept: bool = False,
    unsynced: bool = False,
) -> list[Figure]:
    """Has a run, a comparison and a loop save in turn."""
    found: list[Figure] = []
    for mib in sizes:
        found += _figures(setting, mib, "run") + _figures(setting, mib, "ab")
    for mib in sizes if kept else ():
        found += _figures(setting, mib, "run", "--keep-data")
    for mib in sizes if unsynced else ():
        found += _figures(setting, mib, "run", loop="a bare loop without sync")
    for mib in sizes:
        command = [sys.executable, "-c", _PROGRAM.format(mib, _TURNS)]
        taken = setting.pairs(f"{mib} MiB: turns in a worker", functools.partial(printed, command))
        found.append(
            taken.figure(
                f"{mib} MiB save of a repeat over a bare one in turn in its process, CPU",
                "ms",
                milliseconds("repeat"),
                TARGET,
                beside=milliseconds("bare"),
            )
        )
    return found


def _figures(
    setting: Setting, mib: int, command: Command, *flags: str, loop: str = _LOOP
) -> list[Figure]:
    name = f"{mib} MiB save: {' '.join((command, *flags))} over {loop}"
    pairs = setting.pairs(
        name,
        lambda: _of_command(mib, command, flags),
        lambda: _of_loop(mib, *(() if loop == _LOOP else ("--unsynced",))),
    )
    # What is kept or not synced is shown for comparison: nothing limits it.
    target = float("inf") if flags or loop != _LOOP else TARGET
    return [
        pairs.figure(f"{name}{suffix}", "ms", milliseconds(metric), target)
        for metric, suffix in ((TIME, ""), (CPU, ", CPU"))
    ]


def _of_command(mib: int, command: Command, flags: Sequence[str]) -> dict[str, float]:
    """Returns the median of the seconds, and of the CPU seconds, of a save."""
    how = ("--no-limits",) if command == "run" else ("--allow-inconclusive",)
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "suite.json"
        suite.write_text(json.dumps(_suite(mib, command)))
        run(
            our_command(command, str(suite), "-o", f"{folder}/run", "--quiet", *how, *flags),
            environment=_ENVIRONMENT,
            keep_output=True,
        )
        return {metric: _median(Path(folder), metric) for metric in (TIME, CPU)}


def _median(folder: Path, metric: str) -> float:
    """Returns the median of a metric of the saves that are recorded below a folder."""
    return statistics.median(
        sample["value"]
        for record in folder.glob("run/records/**/repeat_*/host_0.json")
        for sample in json.loads(record.read_text())["samples"]
        if (sample["operation"], sample["metric"]) == (_OPERATION, metric)
    )


def _suite(mib: int, command: Command) -> dict[str, Any]:
    # As many operations as the loop has, whatever the verdict: one look, and limits that no
    # operations beyond it could show.
    looks = {"looks": [_SAVES // 2], "max_stalls": None, "max_failures": None, "lives": "auto"}
    arms = {"arms": {}, "gate": looks} if command == "ab" else {}
    return {
        **arms,
        "suite_name": "saves",
        "num_repeats": _SAVES,
        "execution": {"warmups": _WARMUPS},
        "checkpoint_config": {"spec": {"w": {"dtype": "float32", "shape": [mib, 2**18]}}},
        "benchmarks": [{"generator": "save_restore", "options": {}}],
    }


def _of_loop(mib: int, *flags: str) -> dict[str, float]:
    loop = ("--loop", str(mib), "--saves", str(_SAVES))
    command = [sys.executable, "-m", "perf.run_cost", *loop, *flags]
    found: dict[str, float] = printed(command, {**_ENVIRONMENT, **allocator_settings("reused")})
    return found


def save_again_and_again(mib: int, saves: int, *, synced: bool = True) -> dict[str, float]:
    """Returns the median seconds, and CPU seconds, of a save that writes over the last."""
    import jax
    from orbax.checkpoint import v1 as ocp

    point = saving_point(shape=(mib, 2**18))
    tree = StateCache().get(point.checkpoint, None, None).tree
    target = target_of(tree)
    taken, spent = [], []
    with tempfile.TemporaryDirectory() as folder, OPTIONS().orbax_context():
        path = Path(folder) / "checkpoint"
        for _ in range(_WARMUPS + saves):
            shutil.rmtree(path, ignore_errors=True)
            if synced:
                os.sync()
            began, used = perf_counter(), process_time()
            ocp.save_async(path, tree).result()
            taken.append(perf_counter() - began)
            spent.append(process_time() - used)
            jax.block_until_ready(ocp.load(path, target))
    return {TIME: statistics.median(taken[_WARMUPS:]), CPU: statistics.median(spent[_WARMUPS:])}


_bare_s: list[float] = []
"""CPU seconds of each save of `BareSave`."""


@authoring.benchmark_options(authoring.BenchmarkOptions)
class BareSave(authoring.BenchmarksGenerator):
    """A save and a load as an author would write them without any framework."""

    def test_fn(self, context: authoring.TestContext) -> authoring.TestResult:
        """Notes the CPU seconds of the save, and measures nothing."""
        import jax
        from orbax.checkpoint import v1 as ocp

        metrics, path = Metrics(), context.path / "bare"
        with OPTIONS().orbax_context():
            used = process_time()
            ocp.save_async(path, context.pytree).result()
            _bare_s.append(process_time() - used)
            jax.block_until_ready(ocp.load(path, target_of(context.pytree)))
        with metrics.measure("nothing", ["time"]):
            pass
        return authoring.TestResult(metrics=metrics)


def save_in_turn(mib: int, turns: int) -> dict[str, float]:
    """Returns the median CPU seconds of a save in a repeat, and of a bare one after each."""
    saving = saving_point(shape=(mib, 2**18))
    bare = point_of("perf.run_cost.BareSave", shape=(mib, 2**18))
    with tempfile.TemporaryDirectory() as folder:
        perform([saving, bare] * (_WARMUPS + turns), Path(folder))
        taken = _median(Path(folder), CPU)
    return {"repeat": taken, "bare": statistics.median(_bare_s[_WARMUPS:])}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the table, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="perf.run_cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="pairs (default 5)")
    parser.add_argument("--kept", action="store_true", help="also run with --keep-data")
    parser.add_argument("--unsynced", action="store_true", help="also a loop without sync")
    parser.add_argument("--mib", type=int, choices=SIZES, help="this size alone")
    parser.add_argument("--loop", type=int, metavar="MIB", help=argparse.SUPPRESS)
    parser.add_argument("--saves", type=int, default=_SAVES, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.loop is not None:
        taken = save_again_and_again(options.loop, options.saves, synced=not options.unsynced)
        print(json.dumps(taken))
        return 0
    found = figures(
        Setting(rounds=options.rounds),
        sizes=SIZES if options.mib is None else (options.mib,),
        kept=options.kept,
        unsynced=options.unsynced,
    )
    return end(found, paired_table(found), file=None, plain=None)


if __name__ == "__main__":
    sys.exit(main())
