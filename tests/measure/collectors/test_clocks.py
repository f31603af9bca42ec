"""Wall clock and processor time of a block."""

import resource
import subprocess
import sys
import threading
import time

import pytest

from orbax_bench_core.measure.collectors import clocks
from orbax_bench_core.measure.collectors.clocks import Cpu

TOTAL = "0_basics/cpu_s"
CHILDREN = "0_basics/cpu_children_s"


def collect(operation):
    collector = Cpu()
    collector.start()
    operation()
    return {reading.metric: reading.value for reading in collector.stop()}


def work(seconds=0.05):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_defect_9_processor_time_is_what_the_process_used():
    began = time.process_time()
    found = collect(work)

    assert found[TOTAL] == pytest.approx(time.process_time() - began, abs=0.01)


@pytest.mark.slow
def test_waiting_takes_none():
    began = time.perf_counter()
    found = collect(lambda: time.sleep(0.1))

    assert found[TOTAL] < time.perf_counter() - began


def test_other_threads_count():
    def in_a_thread():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert collect(in_a_thread)[TOTAL] >= 0.05


def children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_children_that_ended_count_apart():
    before = children_s()
    found = collect(lambda: subprocess.run([sys.executable, "-S", "-c", "sum(range(10**6))"]))

    assert 0 < found[CHILDREN] == pytest.approx(children_s() - before)


def test_bytes_give_throughput_in_binary_gigabytes():
    found = clocks.clock_readings(0.5, 3 * 2**30, ["time"])

    assert ("4_throughput/operation_gbps", 6.0, "GiB/s") in found
