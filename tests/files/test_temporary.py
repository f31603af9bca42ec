"""Temporary files and folders of processes that are gone, and of those that are not."""

import os
import subprocess
import tempfile
from pathlib import Path

import psutil
import pytest

from orbax_bench_core.files import (
    scratch_folder,
    temporary,
    write_atomically,
    write_if_changed,
)
from orbax_bench_core.files.temporary import temporary_name


@pytest.fixture(scope="module")
def name_of_the_dead():
    """The name of a temporary file beside `a` of a process that has ended."""
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    return temporary_name("a").replace(f"-{os.getpid()}-", f"-{ended.pid}-")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "_written_to", set())


def test_the_next_writer_deletes_what_a_killed_one_has_left(tmp_path, name_of_the_dead):
    (tmp_path / name_of_the_dead).write_text("half")
    write_atomically(tmp_path / "b", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_what_somebody_writes_at_this_moment_stays(tmp_path):
    own = temporary_name("a")
    for name in (own, ".other.tmp", "data.tmp"):
        (tmp_path / name).write_text("half")
    write_atomically(tmp_path / "b", b"whole")
    assert {path.name for path in tmp_path.iterdir()} == {own, ".other.tmp", "data.tmp", "b"}


def test_a_scratch_folder_goes_with_those_of_its_kind_that_the_dead_have_left(
    tmp_path, name_of_the_dead
):
    owner = name_of_the_dead.split(".")[2]
    left, other = tmp_path / f"mine.{owner}.abcd1234", tmp_path / f"other.{owner}.abcd1234"
    for folder in (left, other):
        (folder / "deep").mkdir(parents=True)
    with scratch_folder("mine") as folder:
        assert set(tmp_path.iterdir()) == {folder, other}
    assert list(Path(tmp_path).iterdir()) == [other]


def test_a_file_that_is_as_it_is_to_be_stays_and_what_is_left_beside_it_does_not(
    tmp_path, name_of_the_dead
):
    path = tmp_path / "a"
    write_if_changed(str(path), b"whole")
    before = path.stat().st_ino
    (tmp_path / name_of_the_dead).write_text("half")
    temporary._written_to.clear()  # as another process would find it
    write_if_changed(str(path), b"whole")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert path.stat().st_ino == before


def test_a_process_is_told_from_a_later_one_of_its_number_by_its_start():
    ticks, began = os.sysconf("SC_CLK_TCK"), psutil.Process().create_time() - psutil.boot_time()
    assert int(temporary.started(os.getpid())) / ticks == pytest.approx(began, abs=2)
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    assert temporary.started(ended.pid) == ""
