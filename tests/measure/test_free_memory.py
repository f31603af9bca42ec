"""Free memory: the machine's, or the least that a control group of either version leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbax_bench_core.measure.free_memory import _left_by_groups


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cgroup"


def unified(folder: Path, limit: str, used: int = 700) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    counts = "anon 300\nfile 390\nshmem 40\nactive_file 150\ninactive_file 200\n"
    (folder / "memory.stat").write_text(counts)


def divided(folder: Path, limit: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (folder / "memory.usage_in_bytes").write_text("700\n")
    counts = "cache 400\ninactive_file 1\ntotal_inactive_file 100\ntotal_active_file 200\n"
    (folder / "memory.stat").write_text(counts)


def left(root: Path, membership: str) -> list[int]:
    file = root.parent / "membership"
    file.write_text(membership)
    return list(_left_by_groups(file, root))


def test_a_containers_page_cache_counts_as_free_but_not_its_tmpfs(root: Path) -> None:
    unified(root, "1000")
    assert left(root, "0::/\n") == [1000 - 700 + 350]


def test_the_groups_around_a_group_limit_it_too(root: Path) -> None:
    unified(root / "pods" / "one", "5000")
    unified(root / "pods", "1000")
    assert min(left(root, "0::/pods/one\n")) == 650


def test_a_container_sees_its_group_at_the_root_whatever_its_name(root: Path) -> None:
    unified(root, "1000")
    assert left(root, "0::/kubepods/pod1/c1\n") == [650]


def test_version_1_has_other_names(root: Path) -> None:
    divided(root / "memory" / "docker" / "c1", 1000)
    assert left(root, "11:cpu,cpuacct:/docker/c1\n4:memory:/docker/c1\n") == [600]


def test_where_there_are_no_groups_nothing_is_said(root: Path) -> None:
    assert left(root, "0::/\n") == []
    assert list(_left_by_groups(root / "missing", root)) == []
