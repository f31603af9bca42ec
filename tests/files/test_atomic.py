"""Files: read up to a limit, never waited for, and written in full or not at all."""

import contextlib
import io
import os
import resource
import types
from pathlib import Path

import pytest
from etils import epath

from orbax_bench_core.files import atomic, read_at_most
from orbax_bench_core.files.atomic import write_atomically


@contextlib.contextmanager
def disk_with_room_for(num_bytes):
    """Lets no file of this process grow beyond `num_bytes`, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def path(tmp_path):
    return epath.Path(tmp_path) / "folder" / "file.json"


def test_whoever_reads_the_old_file_meanwhile_reads_all_of_it(path):
    write_atomically(path, b"old")
    with path.open("rb") as reader:
        write_atomically(path, b"new")
        assert reader.read() == b"old"


def test_a_failed_write_leaves_the_old_file(path):
    write_atomically(path, b"old")
    with disk_with_room_for(1000), pytest.raises(OSError, match="File too large"):
        write_atomically(path, b"x" * 10_000)
    assert path.read_bytes() == b"old"


def test_a_failed_rename_leaves_no_temporary_file(path):
    path.mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        write_atomically(path, b"data")
    assert [entry.name for entry in path.parent.iterdir()] == ["file.json"]


@pytest.mark.parametrize("kind", ["pipe", "link to a device"])
def test_what_is_no_file_is_not_replaced(path, kind):
    path = Path(path)
    path.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    before = path.lstat()
    with pytest.raises(OSError, match="which no file takes the place of; name a file"):
        write_atomically(path, b"new")
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert [left.name for left in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("place", ["/dev/zero", "pipe"])
def test_what_has_no_end_is_not_read(tmp_path, place):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="Neither a file nor a folder"):
        read_at_most(epath.Path(tmp_path / place))


def test_an_object_that_is_too_large_is_not_fetched(monkeypatch):
    class Remote(io.BytesIO):
        size = 2**40

        def read(self, *_):
            raise AssertionError("it is fetched")

    found = types.SimpleNamespace(open=lambda _: Remote())
    monkeypatch.setattr(atomic, "place", lambda _: found)
    with pytest.raises(OSError, match="Larger than"):
        read_at_most("gs://bucket/object")
