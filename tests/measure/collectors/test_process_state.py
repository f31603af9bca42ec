"""Levels of the process when a block ends."""

import os
import threading

import pytest

from orbax_bench_core.measure.collectors import kernel_counters, process_state
from orbax_bench_core.measure.collectors.process_state import ProcessState

MIB = 2**20


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Makes this process a member of a control group whose memory.stat says something."""
    monkeypatch.setattr(kernel_counters, "_MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(kernel_counters, "_ROOT", tmp_path / "sys")
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
