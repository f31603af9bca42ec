"""Free memory: the machine's, or the least that a control group of either version leaves."""

from types import SimpleNamespace

import pytest

import orbax_bench_core.measure.free_memory as groups
from orbax_bench_core.measure import free_memory_bytes


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(groups, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(groups, "ROOT", tmp_path / "cgroup")
    machine = SimpleNamespace(available=10**6)
    monkeypatch.setattr("psutil.virtual_memory", lambda: machine)
    return tmp_path / "cgroup"


def unified(folder, limit, used=700):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    counts = "anon 300\nfile 390\nshmem 40\nactive_file 150\ninactive_file 200\n"
    (folder / "memory.stat").write_text(counts)


def divided(folder, limit):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (folder / "memory.usage_in_bytes").write_text("700\n")
    counts = "cache 400\ninactive_file 1\ntotal_inactive_file 100\ntotal_active_file 200\n"
    (folder / "memory.stat").write_text(counts)


def free(membership):
    groups.MEMBERSHIP.write_text(membership)
    return free_memory_bytes()


def test_the_groups_around_a_group_limit_it_too(root):
    unified(root / "pods" / "one", "5000")
    unified(root / "pods", "1000")
    assert free("0::/pods/one\n") == 650


@pytest.mark.parametrize("name", ["/", "/kubepods/pod1/c1"])
def test_a_containers_page_cache_counts_as_free_but_not_its_tmpfs_whatever_its_name(root, name):
    unified(root, "1000")
    assert free(f"0::{name}\n") == 1000 - 700 + 350


def test_version_1_has_other_names(root):
    divided(root / "memory" / "docker" / "c1", 1000)
    assert free("11:cpu,cpuacct:/docker/c1\n4:memory:/docker/c1\n") == 600


def test_where_there_are_no_groups_the_machine_counts(root):
    assert free_memory_bytes() == 10**6
    assert free("0::/\n") == 10**6
