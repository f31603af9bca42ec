"""Counters of the kernel: storage and network I/O, page faults, memory of the control group."""

import mmap
import os
import socket
import threading

import pytest

from orbax_bench_core.measure import free_memory
from orbax_bench_core.measure.collectors import base, kernel_counters
from orbax_bench_core.measure.collectors.kernel_counters import (
    CgroupMemory,
    DiskIo,
    Network,
    PageFaults,
)


def collect(kind, operation=lambda: None):
    collector = kind()
    collector.start()
    operation()
    return {reading.metric: reading.value for reading in collector.stop()}


def test_a_forked_process_opens_its_own(monkeypatch):
    before = base.reader("/proc/self/stat")
    monkeypatch.setattr(os, "getpid", os.getppid)

    assert base.reader("/proc/self/stat") is not before


def test_a_long_file_is_read_to_its_end(tmp_path):
    file = tmp_path / "long"
    file.write_bytes(bytes(100_000))
    read = base.reader(str(file))
    assert read is not None

    assert len(base.read_all(read)) == 100_000


PAGES = 4096
MINOR = "7_memory/minor_faults_count"


@pytest.fixture
def memory():
    """Fresh memory in pages of the usual size."""
    fresh = mmap.mmap(-1, PAGES * mmap.PAGESIZE)
    fresh.madvise(mmap.MADV_NOHUGEPAGE)
    return fresh


def touch(memory):
    for page in range(PAGES):
        memory[page * mmap.PAGESIZE] = 1


def test_every_first_touch_of_a_page_counts_and_waits_for_no_storage(memory):
    found = collect(PageFaults, lambda: touch(memory))
    assert found[MINOR] == pytest.approx(PAGES, abs=PAGES / 10)
    assert found["7_memory/major_faults_count"] < PAGES / 10


SIZE = 8 * 2**20
# Other threads of the process may read and write too.
SLACK = 2**17

DISK_READ = "6_io/disk_read_bytes"
DISK_WRITE = "6_io/disk_write_bytes"
READ_CALLS = "6_io/read_call_bytes"
WRITE_CALLS = "6_io/write_call_bytes"
CACHE_HITS = "6_io/page_cache_hit_bytes"


def read(path):
    path.read_bytes()


@pytest.fixture
def warm(tmp_path):
    """A file that is on storage and in the page cache."""
    path = tmp_path / "data"
    with path.open("wb") as file:
        file.write(os.urandom(SIZE))
        file.flush()
        os.fsync(file.fileno())
    return path


@pytest.fixture
def cold(warm):
    """A file that is on storage alone."""
    with warm.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if collect(DiskIo, lambda: read(warm))[DISK_READ] == 0:
        pytest.skip("this file system keeps everything in memory, or does not count")
    with warm.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return warm


def test_defect_8_a_cold_read_comes_from_storage(cold):
    found = collect(DiskIo, lambda: read(cold))

    assert found[DISK_READ] >= SIZE
    assert found[CACHE_HITS] <= SLACK


def test_defect_8_a_warm_read_comes_from_the_page_cache(warm):
    found = collect(DiskIo, lambda: read(warm))

    assert found[DISK_READ] <= SLACK
    assert found[CACHE_HITS] == pytest.approx(SIZE, abs=SLACK)
    assert found[READ_CALLS] == pytest.approx(SIZE, abs=SLACK)


def test_write_calls_count(tmp_path):
    data = bytes(SIZE)

    found = collect(DiskIo, lambda: (tmp_path / "new").write_bytes(data))

    assert found[WRITE_CALLS] == pytest.approx(SIZE, abs=SLACK)


def test_pages_that_became_dirty_count_as_written(cold):
    data = bytes(SIZE)

    found = collect(DiskIo, lambda: (cold.parent / "new").write_bytes(data))

    assert found[DISK_WRITE] == pytest.approx(SIZE, abs=SLACK)


def test_a_kernel_that_does_not_count_disks_gives_nothing(monkeypatch):
    monkeypatch.setattr(kernel_counters, "_IO_FILE", "/proc/self/no_such_file")

    assert collect(DiskIo, lambda: None) == {}


MIB = 2**20
HEADER = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
"""
LOOPBACK = "6_io/network_loopback_bytes"


def table(**bytes_of):
    rows = [
        f"{name:>6}: {received} 9 9 9 9 9 9 9 {sent} 9 9 9 9 9 9 9\n"
        for name, (received, sent) in bytes_of.items()
    ]
    return HEADER + "".join(rows)


@pytest.fixture
def counters(tmp_path, monkeypatch):
    """The kernel's file, as a test writes it."""
    file = tmp_path / "dev"
    monkeypatch.setattr(kernel_counters, "_NET_FILE", str(file))
    return file


def test_defect_9_all_interfaces_but_loopback_are_summed(counters):
    counters.write_text(table(lo=(5, 5), eth0=(100, 10), eth1=(1000, 20)))

    found = collect(
        Network, lambda: counters.write_text(table(lo=(6, 6), eth0=(103, 15), eth1=(1004, 26)))
    )

    assert found == {
        "6_io/network_receive_bytes": 7,
        "6_io/network_transmit_bytes": 11,
        LOOPBACK: 1,
    }


def test_what_goes_over_loopback_is_counted():
    def send():
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname()) as sender,
            server.accept()[0] as receiver,
        ):
            thread = threading.Thread(target=sender.sendall, args=(bytes(MIB),))
            thread.start()
            left = MIB
            while left:
                left -= len(receiver.recv(left))
            thread.join()

    if base.reader("/proc/self/net/dev") is None:
        pytest.skip("the kernel does not count")

    assert collect(Network, send)[LOOPBACK] >= MIB


PEAK = "7_memory/cgroup_peak_mb"
IS_BOUND = "7_memory/cgroup_peak_is_bound"


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Makes this process a member of groups, with a file of 10 MiB; returns the file."""

    def make(membership, file):
        (tmp_path / "membership").write_text(membership)
        path = tmp_path / "sys" / file
        path.parent.mkdir(parents=True)
        path.write_text(str(10 * MIB))
        return path

    monkeypatch.setattr(free_memory, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(free_memory, "ROOT", tmp_path / "sys")
    kernel_counters._peak_file.cache_clear()
    yield make
    kernel_counters._peak_file.cache_clear()


@pytest.mark.parametrize(
    ("membership", "file"),
    [
        ("0::/pod/main\n", "pod/main/memory.peak"),
        ("0::/\n", "memory.peak"),
        ("0::/docker/c0ffee\n", "memory.peak"),
        (
            "9:cpu:/x\n4:memory:/pod\n0::/\n",
            "memory/pod/memory.max_usage_in_bytes",
        ),
        ("4:hugetlb,memory:/docker/c0ffee\n0::/\n", "memory/memory.max_usage_in_bytes"),
    ],
    ids=["v2", "v2 in a namespace", "v2 under the host's name", "v1", "v1 under the host's name"],
)
def test_the_file_of_the_group_is_found(groups, membership, file):
    groups(membership, file)

    assert collect(CgroupMemory)[PEAK] == 10


def test_a_mark_that_the_block_set_is_its_peak(groups):
    file = groups("0::/\n", "memory.peak")

    found = collect(CgroupMemory, lambda: file.write_text(str(12 * MIB)))

    assert found == {PEAK: 12, IS_BOUND: 0}


def test_an_older_mark_is_a_bound(groups):
    groups("0::/\n", "memory.peak")

    assert collect(CgroupMemory)[IS_BOUND] == 1


def test_without_a_memory_controller_there_is_nothing(groups):
    groups("0::/\n", "cpu.stat")

    assert collect(CgroupMemory) == {}
