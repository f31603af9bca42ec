"""Samples are streamed as blocks end; failures do not spread."""

import threading
import time

import pytest

from orbax_bench_core.measure import Metrics, observers
from orbax_bench_core.measure.observers import observing


def test_the_observer_gets_the_samples_of_each_block():
    seen = []
    metrics = Metrics()

    with observing(seen.extend), metrics.measure("op"):
        pass

    assert seen == metrics.samples


def test_the_observer_gets_what_a_failing_block_measured():
    seen = []

    with (
        pytest.raises(OSError, match="disk full"),
        observing(seen.extend),
        Metrics().measure("op", ["time"]),
    ):
        raise OSError("disk full")

    assert [sample.operation for sample in seen] == ["op"]


def test_a_second_observer_is_an_error():
    with observing(lambda _: None), pytest.raises(RuntimeError, match="observing is already"):
        observing(lambda _: None).__enter__()


def test_the_observer_is_outside_the_clock_of_enclosing_blocks(pause):
    metrics = Metrics()

    with (
        observing(lambda _: pause()),
        metrics.measure("outer", ["time"]),
        metrics.measure("inner", ["time"]),
    ):
        pass

    assert metrics.results["outer_0_basics/time_s"][0] == 0


def test_a_failing_observer_leaves_the_block_whole(logged):
    def fail(_):
        raise OSError("pipe closed")

    metrics = Metrics()

    with observing(fail), metrics.measure("op", ["time"]):
        pass

    assert "pipe closed" in logged.text()
    assert len(metrics.samples) == 1


def test_calls_come_one_at_a_time():
    busy = threading.Lock()
    overlaps = []

    def observe(_):
        free = busy.acquire(blocking=False)
        overlaps.append(not free)
        time.sleep(0.001)
        if free:
            busy.release()

    def work():
        for _ in range(10):
            with Metrics().measure("op", ["time"]):
                pass

    with observing(observe):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert overlaps == [False] * 40


def test_no_call_runs_once_observing_ended():
    began, ended = threading.Event(), threading.Event()

    def observe(_):
        began.set()
        time.sleep(0.05)
        ended.set()

    def work():
        with Metrics().measure("op", ["time"]):
            pass

    with observing(observe):
        thread = threading.Thread(target=work)
        thread.start()
        began.wait()
    over = ended.is_set()
    thread.join()

    assert over


def test_an_interrupt_is_no_failure():
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        observers.attempt("be interrupted", interrupt, None)
