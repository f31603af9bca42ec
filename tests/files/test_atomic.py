"""A file is there in full or not at all."""

import contextlib
import os
import resource

import pytest
from etils import epath

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


def test_folders_are_made(path):
    write_atomically(path, b"data")
    assert path.read_bytes() == b"data"


def test_a_file_is_replaced(path):
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


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


def test_a_failed_write_leaves_no_new_file(path):
    with disk_with_room_for(1000), pytest.raises(OSError, match="File too large"):
        write_atomically(path, b"x" * 10_000)
    assert list(path.parent.iterdir()) == []


def test_a_failed_rename_leaves_no_temporary_file(path):
    path.mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        write_atomically(path, b"data")
    assert [entry.name for entry in path.parent.iterdir()] == ["file.json"]


def test_a_write_leaves_nothing_else(path):
    write_atomically(path, b"data")
    assert [entry.name for entry in path.parent.iterdir()] == ["file.json"]


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_nothing_takes_the_place_of_a_device_or_a_pipe(tmp_path, kind):
    target = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to("/dev/null")
    with pytest.raises(OSError, match="Neither a file nor a folder"):
        write_atomically(str(target), b"data")
    assert target.is_fifo() if kind == "pipe" else target.is_symlink()
    assert [path.name for path in tmp_path.iterdir()] == [kind]
