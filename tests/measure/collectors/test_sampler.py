"""The background thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from orbax_bench_core.measure.collectors.resident_memory import Sampler

INTERVAL_S = 0.002
PATIENCE_S = 60.0


def sampling(sample: Callable[[], None]) -> Sampler:
    return Sampler("sample for a test", sample, interval_s=INTERVAL_S)


def wait_until(true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not true() and time.monotonic() < deadline:
        time.sleep(INTERVAL_S)
    return true()


def test_it_rests_once_released() -> None:
    calls: list[int] = []
    sampler = sampling(lambda: calls.append(1))
    sampler.hold()
    wait_until(lambda: bool(calls))

    sampler.release()

    def rests() -> bool:  # one last call may follow
        before = len(calls)
        time.sleep(20 * INTERVAL_S)
        return len(calls) == before

    assert wait_until(rests)


def test_a_thread_that_a_fork_lost_is_replaced() -> None:
    calls: list[int] = []
    sampler = sampling(lambda: calls.append(1))
    lost = threading.Thread(target=lambda: None)
    lost.start()
    lost.join()
    sampler._thread = lost

    sampler.hold()
    sampled = wait_until(lambda: bool(calls))
    sampler.release()

    assert sampled


def test_a_sample_that_fails_does_not_end_it() -> None:
    calls: list[int] = []

    def fail() -> None:
        calls.append(1)
        raise OSError("no such file")

    sampler = sampling(fail)
    sampler.hold()
    again = wait_until(lambda: len(calls) >= 2)
    sampler.release()

    assert again
