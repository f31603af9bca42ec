"""Provenance of a record."""

from pathlib import Path

import pytest

from orbax_bench_core.provenance import machine
from orbax_bench_core.provenance.machine import (
    UNKNOWN,
    host_provenance,
    other_surroundings,
    package_version,
)
from tests.support.repositories import git, repository  # noqa: F401 - fixtures


@pytest.fixture
def fresh():
    """Asks for the facts again, without the cache."""
    return host_provenance.__wrapped__


def test_defect_20_the_commit_is_not_that_of_the_current_folder(
    fresh, git, repository, monkeypatch
):
    before = fresh()["git"]["commit"]
    monkeypatch.chdir(repository)
    assert fresh()["git"]["commit"] == before != git("rev-parse", "HEAD")


def test_changed_code_is_dirty(repository):
    (repository / "benches" / "mine.py").write_text("x = 2\n")
    assert machine._git_revision(repository / "benches" / "mine.py")["dirty"] is True


def test_code_installed_inside_a_repository_is_not_of_it(repository):
    installed = repository / ".venv" / "code.py"
    installed.parent.mkdir()
    installed.write_text("x = 1\n")
    unknown = {"commit": UNKNOWN, "dirty": UNKNOWN}
    assert machine._git_revision(installed) == unknown


@pytest.mark.parametrize("path", ["", "/nowhere"])
def test_without_git_the_revision_is_unknown_and_not_absent(fresh, monkeypatch, path):
    monkeypatch.setenv("PATH", path)
    assert fresh()["git"] == {"commit": UNKNOWN, "dirty": UNKNOWN}


def test_a_package_that_is_not_installed_is_unknown():
    assert package_version("no-such-package-of-mine") == UNKNOWN


def test_no_fact_is_absent(fresh, monkeypatch):
    monkeypatch.delenv("ORBAX_BENCH_IMAGE", raising=False)
    monkeypatch.delenv("ORBAX_BENCH_BASE_DIGEST", raising=False)
    monkeypatch.delenv("LIBTPU_INIT_ARGS", raising=False)
    facts = fresh()
    assert (facts["image"], facts["base_image"]) == (UNKNOWN, UNKNOWN)
    assert facts["environment"]["LIBTPU_INIT_ARGS"] == ""
    assert set(facts["host"]) == {"name", "kernel", "cpu", "cpu_count", "memory_bytes"}
    assert all(facts["host"].values())


def test_the_image_is_what_the_environment_says(fresh, monkeypatch):
    told = f"orbax-bench:0.1.0@sha256:{'c0ffee00' * 8}"
    monkeypatch.setenv("ORBAX_BENCH_IMAGE", told)
    monkeypatch.setenv("ORBAX_BENCH_BASE_DIGEST", "sha256:ba5e")
    assert (fresh()["image"], fresh()["base_image"]) == (told, "sha256:ba5e")


@pytest.mark.parametrize("told", ["orbax-bench:0.1.0", "a/b", "sha256:c0ffee", ""])
def test_a_tag_does_not_tell_what_ran(fresh, monkeypatch, told):
    monkeypatch.setenv("ORBAX_BENCH_IMAGE", told)
    assert fresh()["image"] == UNKNOWN


def test_a_processor_that_linux_does_not_name_is_named_by_python_or_unknown(monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda self: (_ for _ in ()).throw(OSError("none")))
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    assert machine._cpu_model() == UNKNOWN


def test_what_a_launcher_tells_of_a_host_is_kept_and_what_it_does_not_is_not(fresh, monkeypatch):
    assert not {"node", "node_pool", "restarts", "rejoined"} & fresh()["host"].keys()
    monkeypatch.setenv("ORBAX_BENCH_NODE", "gke-a-1")
    monkeypatch.setenv("ORBAX_BENCH_NODE_POOL", "v5e")
    monkeypatch.setenv("ORBAX_BENCH_RESTARTS", "2")
    assert (
        fresh()["host"].items() >= {"node": "gke-a-1", "node_pool": "v5e", "restarts": "2"}.items()
    )


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"host": {"cpu": "Xeon", "cpu_count": 2}}, ["CPU: Xeon, was EPYC"]),
        ({"host": {"cpu": "EPYC", "cpu_count": 4}}, ["number of CPUs: 4, was 2"]),
        ({"devices": {"kind": "TPU v5e"}}, ["device: TPU v5e, was cpu"]),
        ({"storage": {"type": "gs"}}, ["storage: gs, was ext4"]),
        ({"host": {"name": "other", "cpu": "EPYC", "cpu_count": 2}}, []),
        ({"devices": "unknown"}, []),
        ({"host": {}}, []),
    ],
)
def test_what_differs_is_named(make_record, block, said):
    before = {**make_record().provenance, "storage": {"type": "ext4"}}
    assert other_surroundings({**before, **block}, before) == said
