"""The resident set, its growth and its peak, and levels of the process."""

import mmap
import os
import threading
import time

import psutil
import pytest

from orbax_bench_core.measure import Metrics, free_memory
from orbax_bench_core.measure.collectors import base, peak_mark, peak_rss, process_state, rss
from orbax_bench_core.measure.collectors.process_state import ProcessState
from orbax_bench_core.measure.collectors.rss import Rss, resident_bytes
from orbax_bench_core.measure.collectors.sampler import Sampler

MIB = 2**20


def test_memory_that_is_touched_and_kept_counts():
    collector = Rss()
    collector.start()
    kept = b"x" * (64 * MIB)

    (reading,) = collector.stop()

    assert reading.unit == "MiB"
    assert len(kept) / MIB * 0.9 <= reading.value <= len(kept) / MIB * 1.5


def test_without_a_kernel_file_psutil_is_asked(monkeypatch):
    monkeypatch.setattr(base, "reader", lambda path: None)
    expected = psutil.Process().memory_info().rss

    assert abs(rss.resident_bytes() - expected) <= MIB


def test_a_forked_process_reads_itself():
    rss._process(os.getpid())

    assert rss._process(os.getppid()).pid == os.getppid()


def test_a_process_that_may_not_reset_it_is_told(monkeypatch):
    monkeypatch.setattr(peak_mark, "_switch", lambda pid: None)

    with pytest.raises(OSError, match="ask has_mark"):
        peak_mark.reset_mark()


KEYS = ["peak_rss"]
DIFF = "7_memory/host_peak_rss_diff_mb"
IS_BOUND = "7_memory/host_peak_rss_is_bound"
# Other threads of the process come and go.
SLACK = 6


SAMPLED = threading.Event()
"""Set by each sample, which a busy machine may take late."""


@pytest.fixture(params=["kernel", "sampled"])
def source(request, monkeypatch):
    """Where the peak comes from."""
    if request.param == "sampled":
        monkeypatch.setattr(peak_rss, "has_mark", lambda: False)
        monkeypatch.setattr(peak_rss, "resident_bytes", noticed(resident_bytes))
    elif not peak_mark.has_mark():
        pytest.skip("the kernel lets nobody reset VmHWM")
    return str(request.param)


def noticed(read):
    def sample():
        found = read()
        if threading.current_thread() is not threading.main_thread():
            SAMPLED.set()
        return found

    return sample


def hold(mebibytes):
    """Needs memory, for long enough that a sample sees it."""
    # Mapped for itself: an allocator may hand out what other tests have left resident.
    with mmap.mmap(-1, mebibytes * MIB) as memory:
        for start in range(0, mebibytes * MIB, mmap.PAGESIZE):
            memory[start] = 1
        sampling = any(not block._exact for block in peak_rss._open)
        for _ in range(2 * sampling):  # the first may have begun before
            SAMPLED.clear()
            assert SAMPLED.wait(60)


def test_defect_9_a_peak_counts_for_the_blocks_around_it_and_for_no_later_one(source):
    metrics = Metrics()

    with metrics.measure("outer", KEYS):
        with metrics.measure("inner", KEYS):
            hold(64)
        with metrics.measure("later", KEYS):
            pass

    for name, mebibytes in (("outer", 64), ("inner", 64), ("later", 0)):
        assert metrics.results[f"{name}_{DIFF}"][0] == pytest.approx(mebibytes, abs=SLACK)
    assert metrics.results[f"later_{IS_BOUND}"][0] == float(source == "sampled")


STEP_S = 0.002
PATIENCE_S = 60.0


def sampling(sample):
    return Sampler("sample for a test", sample, interval_s=STEP_S)


def wait_until(true):
    deadline = time.monotonic() + PATIENCE_S
    while not true() and time.monotonic() < deadline:
        time.sleep(STEP_S)
    return true()


def test_it_rests_once_released():
    calls = []
    sampler = sampling(lambda: calls.append(1))
    sampler.hold()
    wait_until(lambda: bool(calls))

    sampler.release()

    def rests():  # one last call may follow
        before = len(calls)
        time.sleep(20 * STEP_S)
        return len(calls) == before

    assert wait_until(rests)


def test_a_thread_that_a_fork_lost_is_replaced():
    calls = []
    sampler = sampling(lambda: calls.append(1))
    lost = threading.Thread(target=lambda: None)
    lost.start()
    lost.join()
    sampler._thread = lost

    sampler.hold()
    sampled = wait_until(lambda: bool(calls))
    sampler.release()

    assert sampled


def test_a_sample_that_fails_does_not_end_it():
    calls = []

    def fail():
        calls.append(1)
        raise OSError("no such file")

    sampler = sampling(fail)
    sampler.hold()
    again = wait_until(lambda: len(calls) >= 2)
    sampler.release()

    assert again


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Makes this process a member of a control group whose memory.stat says something."""
    monkeypatch.setattr(free_memory, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(free_memory, "ROOT", tmp_path / "sys")
    process_state._stat_file.cache_clear()

    def make(membership, file, text):
        (tmp_path / "membership").write_text(membership)
        path = tmp_path / "sys" / file
        path.parent.mkdir(parents=True)
        path.write_text(text)

    yield make
    process_state._stat_file.cache_clear()


def levels():
    collector = ProcessState()
    collector.start()
    return {reading.metric.partition("/")[2]: reading.value for reading in collector.stop()}


def test_memory_that_is_kept_is_in_the_resident_set():
    before = levels()["process_rss_mb"]
    kept = b"\1" * (64 * MIB)
    assert levels()["process_rss_mb"] - before == pytest.approx(64, abs=8)
    del kept


def test_an_open_file_and_a_thread_count_until_they_end():
    before = levels()
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    file = os.open("/dev/null", os.O_RDONLY)
    during = levels()
    os.close(file)
    end.set()
    thread.join()
    for name in ("process_open_files_count", "process_threads_count"):
        assert during[name] == before[name] + 1


@pytest.mark.parametrize(
    ("membership", "file", "text"),
    [
        ("0::/job\n", "job/memory.stat", f"anon {7 * MIB}\nfile {90 * MIB}\n"),
        ("4:memory:/job\n", "memory/job/memory.stat", f"cache {90 * MIB}\nrss {7 * MIB}\n"),
    ],
    ids=["version 2", "version 1"],
)
def test_the_group_counts_without_the_page_cache(group, membership, file, text):
    group(membership, file, text)
    assert levels()["cgroup_anon_mb"] == 7


def test_without_a_group_there_is_no_level_of_it(group):
    group("1:cpu:/job\n", "unused", "")
    assert "cgroup_anon_mb" not in levels()
