"""Cost of a recorder in a job: saves with and without it by turns, in one process.

`python -m perf.recording [--pairs N] [--mib SIZE] [--leaves N]`

Each pair saves once with a recorder and once without, in drawn order, after a save that is not
counted, with nine steps after each. Of each quantity the median difference is printed with its 95 %
interval; the CPU of the thread that saves tells the cost of the hooks where the wall clock drowns
in noise. Targets: 1 ms of that CPU per save, 5 us per step.
"""

import argparse
import random
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any

import numpy as np

STEPS = 9
CLOCKS: dict[str, Callable[[], float]] = {
    "call of save, wall": perf_counter,
    "call of save, CPU of its thread": thread_time,
    "save and nine steps, CPU of the process": process_time,
}


def once(manager: Any, tree: Any, step: int, recorder: Any) -> dict[str, float]:
    """Saves once and steps nine times; returns seconds by quantity."""
    import orbax.checkpoint as ocp

    begun = {name: clock() for name, clock in CLOCKS.items()}
    manager.save(step, args=ocp.args.StandardSave(tree))
    found = {name: clock() - begun[name] for name, clock in CLOCKS.items()}
    for number in range(STEPS):
        if recorder is not None:
            recorder.step(step + number)
    manager.wait_until_finished()
    last = list(CLOCKS)[-1]
    return found | {last: CLOCKS[last]() - begun[last]}


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--mib", type=float, default=1.0)
    parser.add_argument("--leaves", type=int, default=16)
    given = parser.parse_args()
    import jax
    import orbax.checkpoint as ocp

    from orbax_bench_core.recorder import record

    size = int(given.mib * 2**20 / 4 / given.leaves)
    tree = {f"w{n}": jax.numpy.ones((size,), "float32") for n in range(given.leaves)}
    differences: dict[str, list[float]] = {name: [] for name in CLOCKS}
    plain: dict[str, list[float]] = {name: [] for name in CLOCKS}
    with tempfile.TemporaryDirectory() as folder:
        options = ocp.CheckpointManagerOptions(max_to_keep=1)
        with ocp.CheckpointManager(Path(folder) / "checkpoints", options=options) as manager:
            step = 0
            for pair in range(-3, given.pairs):  # the first ones compile
                by_arm = {}
                for arm in random.sample(["with", "without"], 2):
                    step += 10
                    recorder = record(f"{folder}/recording") if arm == "with" else None
                    once(manager, tree, step, recorder)  # opens the file of the recording
                    step += 10
                    by_arm[arm] = once(manager, tree, step, recorder)
                    if recorder is not None:
                        recorder.close()
                for name in CLOCKS if pair >= 0 else ():
                    plain[name].append(by_arm["without"][name])
                    differences[name].append(by_arm["with"][name] - by_arm["without"][name])
        for name, found in differences.items():
            draws = np.random.default_rng(0).choice(found, (2000, len(found)))
            low, high = 1e3 * np.quantile(np.median(draws, axis=1), [0.025, 0.975])
            median, usual = 1e3 * np.median(found), 1e3 * np.median(plain[name])
            print(f"{name}: {usual:.3f} ms; {median:+.3f} ms [{low:+.3f}, {high:+.3f}] with it")
        with record(f"{folder}/steps") as recorder:
            took = timeit.timeit(recorder.step, timer=thread_time, number=100_000) / 100_000
            print(f"step(): {1e6 * took:.2f} us of CPU")


if __name__ == "__main__":
    main()
