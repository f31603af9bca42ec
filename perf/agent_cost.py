"""Cost of the agent of a host: what it uses while it idles, and what a save costs beside it.

python -m perf.agent_cost idle [--seconds 60]
python -m perf.agent_cost save [--pairs 350]

Both start two hosts on this machine. `idle` looks at the agent in /proc while a repeat lasts.
`save` has the worker of the agent save 32 MiB again and again, and take the CPU seconds of its own
process: with the agent, without it, which is stopped meanwhile, and without it once more, in a
random order. The logarithm of "with" is compared with the mean of both others; the difference of
these two says how large one means nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil
from rich.console import Console

from perf.figure import Figure, figure_table
from tests.support import fake_worker
from tests.support.cluster import Hosts
from tests.support.scripted import ScriptedOptions

_SUITE: Final = """
suite_name: agent_cost
num_repeats: 1
execution: {{retries: 0, warmups: 0, timeout_s: {timeout_s}}}
checkpoint_config: {{spec: {{w: {{dtype: float32, shape: [8]}}}}}}
benchmarks:
  - {{generator: tests.support.scripted.Scripted, options: {{lasts_s: {lasts_s}}}}}
"""
_PAIRS: Final = "AGENT_COST_PAIRS"
_MOST_CPU: Final = 0.005
_MOST_MORE: Final = 0.01
_SETTLES_S: Final = 5.0
_SAVE_BYTES: Final = 32 * 2**20
_WARMUPS: Final = 5
_ONE_SIDED: Final = 1.645
_REST_S: Final = 0.05
"""Before each save, for an agent that goes on to do what it has missed."""

_WITH: Final = "with"
_WITHOUT: Final = "without"
_AGAIN: Final = "without again"


def idle(seconds: float) -> list[Figure]:
    """Looks at an agent whose worker measures, for some seconds."""
    with _two_hosts(lasts_s=seconds + 3 * _SETTLES_S) as (hosts, run, agent):
        hosts.wait_for(lambda: list(run.glob("**/saved_by_1")))
        time.sleep(_SETTLES_S)
        process = psutil.Process(agent)
        before, io_before, began = process.cpu_times(), process.io_counters(), time.monotonic()
        time.sleep(seconds)
        after, io_after, took = process.cpu_times(), process.io_counters(), time.monotonic() - began
    used = (after.user + after.system - before.user - before.system) / took
    wrote = io_after.write_chars - io_before.write_chars
    name = f"idle for {took:.0f} s"
    return [
        Figure(
            group="agent",
            name=f"share of a core, {name}",
            value=used,
            error=1 / os.sysconf("SC_CLK_TCK") / took,
            target=f"≤ {_MOST_CPU:.1%}",
            met=used <= _MOST_CPU,
        ),
        Figure(
            group="agent",
            name=f"bytes written to files, {name}",
            value=wrote,
            error=0.0,
            target="0",
            met=wrote == 0,
            share=False,
        ),
    ]


def save(pairs: int) -> list[Figure]:
    """Compares the CPU seconds of saves with an agent and without."""
    with _two_hosts(lasts_s=0, pairs=pairs) as (hosts, run, _):
        taken = run.parent / "taken.json"
        hosts.wait_for(taken.exists, within_s=3600)
        found: dict[str, list[float]] = json.loads(taken.read_text())
    print(f"{pairs} rounds; CPU seconds without: median {statistics.median(found[_WITHOUT]):.3f}")
    logs = {name: [math.log(value) for value in values] for name, values in found.items()}
    rounds = list(zip(logs[_WITH], logs[_WITHOUT], logs[_AGAIN], strict=True))
    return [
        _ratio(_WITH, [one - (two + three) / 2 for one, two, three in rounds], limit=_MOST_MORE),
        _ratio(_AGAIN, [three - two for _, two, three in rounds], limit=None),
    ]


def _ratio(name: str, logs: Sequence[float], *, limit: float | None) -> Figure:
    middle, error, bound = upper_bound(logs)
    return Figure(
        group="CPU seconds of a save",
        name=f"{name} over without, less 1; 95 % upper bound {math.expm1(bound):.2%}",
        value=math.expm1(middle),
        error=error,
        target="" if limit is None else f"bound ≤ {limit:.0%}",
        met=None if limit is None else math.expm1(bound) <= limit,
    )


def upper_bound(values: Sequence[float]) -> tuple[float, float, float]:
    """Returns the middle of some symmetric noise, its standard error, and an upper bound of it.

    Hodges and Lehmann: the median of the means of all pairs, each value paired with itself as well,
    and that of them above which Wilcoxon's signed-rank statistic falls with 5 %, by the normal
    approximation; outliers count for little.

    Args:
        values: At least 10.
    """
    import numpy as np

    given = np.asarray(values)
    n = len(given)
    means = np.sort(((given[:, None] + given[None, :]) / 2)[np.triu_indices(n)])
    spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    left_out = max(0, math.floor(n * (n + 1) / 4 - _ONE_SIDED * spread))
    middle, bound = float(np.median(means)), float(means[len(means) - 1 - left_out])
    return middle, (bound - middle) / _ONE_SIDED, bound


@contextmanager
def _two_hosts(*, lasts_s: float, pairs: int | None = None) -> Iterator[tuple[Hosts, Path, int]]:
    """Starts two hosts; yields them, their run directory, and the process id of the agent."""
    with tempfile.TemporaryDirectory(prefix="orbax-bench-perf-") as name:
        folder = Path(name)
        suite, run = folder / "suite.yaml", folder / "out"
        suite.write_text(_SUITE.format(lasts_s=lasts_s, timeout_s=lasts_s + 3600))
        own = {} if pairs is None else {"WORKER_MODULE": "perf.agent_cost", _PAIRS: str(pairs)}
        with Hosts(folder, "run", suite, "-o", run, "--no-limits", "--no-lock") as hosts:
            _, agent = [hosts.start(rank, **own) for rank in (0, 1)]
            yield hosts, run, agent.pid


class _Saver(fake_worker.FakeWorker):
    """The worker of the agent: it saves with its parent, and without."""

    def _follow(self, task: fake_worker.Task, script: ScriptedOptions) -> None:
        if task.host == 1:
            taken = save_in_turn(int(os.environ[_PAIRS]), agent=os.getppid())
            new = self._run.root.parent / "taken.new"
            new.write_text(json.dumps(taken))
            new.replace(self._run.root.parent / "taken.json")
        super()._follow(task, script)


def save_in_turn(pairs: int, *, agent: int) -> dict[str, list[float]]:
    """Saves with the agent and without in turn.

    Args:
        pairs: How often to keep the CPU seconds of each way, after some that are thrown away.
        agent: Process id of the agent, which must not be stopped for as long as it is then lost.

    Returns:
        CPU seconds of this process by way of saving, in the order in which they were taken.
    """
    import jax
    from orbax.checkpoint import v1 as ocp

    array = jax.random.normal(jax.random.key(0), (_SAVE_BYTES // 4,), "float32")
    data, rng = {"a": array.block_until_ready()}, random.Random(0)
    taken: dict[str, list[float]] = {_WITH: [], _WITHOUT: [], _AGAIN: []}

    def used(path: Path) -> float:
        time.sleep(_REST_S)
        before = resource.getrusage(resource.RUSAGE_SELF)
        ocp.save(path, data)
        after = resource.getrusage(resource.RUSAGE_SELF)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def with_agent(path: Path) -> float:
        # Signals disturb as well, so that both ways have them before the save.
        os.kill(agent, signal.SIGSTOP)
        os.kill(agent, signal.SIGCONT)
        return used(path)

    def without(path: Path) -> float:
        os.kill(agent, signal.SIGCONT)
        os.kill(agent, signal.SIGSTOP)
        try:
            return used(path)
        finally:
            os.kill(agent, signal.SIGCONT)

    ways: dict[str, Callable[[Path], float]] = {
        _WITH: with_agent,
        _WITHOUT: without,
        _AGAIN: without,
    }
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(_WARMUPS + pairs):
            for name in rng.sample(sorted(ways), len(ways)):
                path = Path(folder) / "save"
                taken[name].append(ways[name](path))
                shutil.rmtree(path)
    return {name: times[_WARMUPS:] for name, times in taken.items()}


def main() -> int:
    """Prints the figures; 1 where one is not met."""
    parser = argparse.ArgumentParser(prog="python -m perf.agent_cost", description=__doc__)
    doing = parser.add_subparsers(dest="what", required=True)
    doing.add_parser("idle").add_argument("--seconds", type=float, default=60.0)
    doing.add_parser("save").add_argument("--pairs", type=int, default=350)
    options = parser.parse_args()
    found = idle(options.seconds) if options.what == "idle" else save(options.pairs)
    Console(width=140).print(figure_table(found))
    return int(any(figure.met is False for figure in found))


if __name__ == "__main__":
    if "--setup" in sys.argv:
        fake_worker.main(_Saver)
    else:
        sys.exit(main())
