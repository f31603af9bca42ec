"""How probes are timed: all threads ready before the clock starts, the first repeat discarded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


def timed(tasks: Sequence[Callable[[], object]]) -> float:
    """Runs tasks side by side, each in a thread of its own that waits for all to be ready.

    Args:
        tasks: What to run. What they return is kept until the clock has stopped, so that freeing
            it is not measured.

    Returns:
        Seconds from the moment that all threads are ready to the end of the last task.

    Raises:
        BaseException: What the first task that failed raised.
    """
    started: list[float] = []
    together = threading.Barrier(len(tasks), action=lambda: started.append(time.perf_counter()))

    def run(task: Callable[[], object]) -> tuple[float, object]:
        together.wait()
        result = task()
        return time.perf_counter(), result

    with ThreadPoolExecutor(len(tasks)) as threads:
        ended = [future.result() for future in [threads.submit(run, task) for task in tasks]]
    return max(moment for moment, _ in ended) - started[0]


def repeated(repeats: int, once: Callable[[], float]) -> list[float]:
    """Returns the times of `repeats` runs, after one that is discarded.

    The first run of anything here takes up to six times as long as the next: its memory is fresh.

    Args:
        repeats: How many to keep.
        once: Runs the probe once and returns its seconds.
    """
    return [once() for _ in range(repeats + 1)][1:]
