"""Boundaries of a block's clock."""

import threading
import time

import pytest

from orbax_bench_core.measure import Metrics

from .conftest import PAUSE_S


def fail():
    raise OSError("disk full")


def seconds(metrics, operation):
    return metrics.results[f"{operation}_0_basics/time_s"][0]


def test_the_operation_is_inside_the_clock(pause):
    metrics = Metrics()

    with metrics.measure("op"):
        pause()

    assert seconds(metrics, "op") == PAUSE_S


def test_defect_7_collectors_are_outside_the_clocks_of_their_block_and_of_all_outer_ones(
    add_scripted, pause
):
    add_scripted("slow", pause, pause)
    metrics = Metrics()

    with (
        metrics.measure("a", ["time"]),
        metrics.measure("b", ["time"]),
        metrics.measure("c", ["time", "slow"]),
    ):
        pass

    assert [seconds(metrics, name) for name in "abc"] == [0, 0, 0]


def test_measuring_inner_blocks_is_outside_the_processor_time_of_the_outer(add_scripted):
    def compute():
        began = time.thread_time()
        while time.thread_time() - began < 0.2:
            pass

    add_scripted("busy", compute, compute)
    metrics = Metrics()

    with metrics.measure("outer", ["time", "cpu"]):
        compute()
        with metrics.measure("inner", ["busy"]):
            pass

    results = metrics.results
    user, system = (results[f"outer_0_basics/cpu_{name}_s"][0] for name in ("user", "system"))
    assert results["outer_0_basics/cpu_s"][0] <= user + system - 0.4
    assert results["outer_0_basics/cpu_s"][0] >= 0.2


def test_an_observer_inside_a_collector_of_an_inner_block_is_subtracted_once(add_scripted, pause):
    inner = Metrics()

    def measure_and_pause():
        with inner.measure("inside", ["time"]):
            pass
        pause()

    add_scripted("measuring", measure_and_pause)
    metrics = Metrics()

    with metrics.measure("outer", ["time"]):
        with metrics.measure("inner", ["time", "measuring"]):
            pass
        pause()

    assert seconds(metrics, "outer") == PAUSE_S


def test_the_call_of_measure_is_outside_the_clock_of_enclosing_blocks(pause):
    class SlowKeys(list[str]):
        def __iter__(self):
            pause()
            return super().__iter__()

    metrics = Metrics()

    with metrics.measure("outer", ["time"]), metrics.measure("inner", SlowKeys(["time"])):
        pass

    assert seconds(metrics, "outer") == 0


def test_blocks_that_overlap_without_nesting_subtract_what_they_share(add_scripted, pause):
    add_scripted("slow", on_stop=pause)
    metrics = Metrics()
    first = metrics.measure("first", ["time", "slow"])
    second = metrics.measure("second", ["time"])

    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)

    assert seconds(metrics, "second") == 0


def test_other_threads_cost_this_one_nothing_to_subtract(add_scripted, pause):
    add_scripted("slow", pause, pause)
    metrics = Metrics()

    def work():
        with metrics.measure("inner", ["time", "slow"]):
            pass

    with metrics.measure("outer", ["time"]):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert seconds(metrics, "outer") == 2 * PAUSE_S


def test_a_block_may_end_in_another_thread(pause):
    metrics = Metrics()
    block = metrics.measure("op", ["time"])

    block.__enter__()
    pause()
    thread = threading.Thread(target=block.__exit__, args=(None, None, None))
    thread.start()
    thread.join()

    assert seconds(metrics, "op") == PAUSE_S


def test_collectors_start_last_key_first_and_stop_first_key_first(add_scripted):
    calls = []
    for key in ("near", "far"):
        add_scripted(
            key,
            lambda key=key: calls.append(f"start {key}"),
            lambda key=key: calls.append(f"stop {key}"),
        )

    with Metrics().measure("op", ["near", "far"]):
        calls.append("operation")

    assert calls == ["start far", "start near", "operation", "stop near", "stop far"]


def test_every_collector_is_loaded_before_the_first_starts(add_scripted, add_collector):
    calls = []

    def load():
        calls.append("load")
        raise ImportError("not installed")

    add_scripted("first", lambda: calls.append("start"))
    add_collector("second", load)

    with Metrics().measure("op", ["second", "first"]):
        pass

    assert calls == ["load", "start"]


@pytest.mark.parametrize("step", ["on_start", "on_stop"])
def test_a_failing_collector_breaks_neither_the_block_nor_other_collectors(add_scripted, step):
    add_scripted("broken", **{step: fail})
    metrics = Metrics()

    with metrics.measure("op", ["time", "broken", "rss"]):
        pass

    assert list(metrics.results) == ["op_0_basics/time_s", "op_0_basics/host_rss_diff_mb"]


def test_a_collector_that_did_not_start_is_not_stopped(add_scripted):
    stops = []

    add_scripted("unstarted", fail, lambda: stops.append("stop"))

    with Metrics().measure("op", ["unstarted"]):
        pass

    assert stops == []


def test_bytes_and_throughput_follow_from_the_number_of_bytes(pause):
    metrics = Metrics()

    with metrics.measure("op", num_bytes=2**30):
        pause()

    results = metrics.results
    assert results["op_5_inventory/operation_bytes"][0] == 2**30
    assert results["op_4_throughput/operation_gbps"][0] == 1 / seconds(metrics, "op")


def test_an_exception_passes_through_after_what_is_known_is_recorded():
    metrics = Metrics()

    with pytest.raises(OSError, match="disk full"), metrics.measure("op", ["time"], num_bytes=1):
        fail()

    assert list(metrics.results) == ["op_0_basics/time_s"]
