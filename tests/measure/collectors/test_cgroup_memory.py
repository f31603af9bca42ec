"""The peak of the control group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orbax_bench_core.measure.collectors import kernel_counters
from orbax_bench_core.measure.collectors.kernel_counters import CgroupMemory

MIB = 2**20
PEAK = "7_memory/cgroup_peak_mb"
IS_BOUND = "7_memory/cgroup_peak_is_bound"

Groups = Callable[[str, str], Path]


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Groups]:
    """Makes this process a member of groups, with a file of 10 MiB; returns the file."""

    def make(membership: str, file: str) -> Path:
        (tmp_path / "membership").write_text(membership)
        path = tmp_path / "sys" / file
        path.parent.mkdir(parents=True)
        path.write_text(str(10 * MIB))
        return path

    monkeypatch.setattr(kernel_counters, "_MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(kernel_counters, "_ROOT", tmp_path / "sys")
    kernel_counters._peak_file.cache_clear()
    yield make
    kernel_counters._peak_file.cache_clear()


def collect(operation: Callable[[], object] = lambda: None) -> dict[str, float]:
    collector = CgroupMemory()
    collector.start()
    operation()
    return {reading.metric: reading.value for reading in collector.stop()}


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
def test_the_file_of_the_group_is_found(groups: Groups, membership: str, file: str) -> None:
    groups(membership, file)

    assert collect()[PEAK] == 10


def test_a_mark_that_the_block_set_is_its_peak(groups: Groups) -> None:
    file = groups("0::/\n", "memory.peak")

    found = collect(lambda: file.write_text(str(12 * MIB)))

    assert found == {PEAK: 12, IS_BOUND: 0}


def test_an_older_mark_is_a_bound(groups: Groups) -> None:
    groups("0::/\n", "memory.peak")

    assert collect()[IS_BOUND] == 1


def test_without_a_memory_controller_there_is_nothing(groups: Groups) -> None:
    groups("0::/\n", "cpu.stat")

    assert collect() == {}
