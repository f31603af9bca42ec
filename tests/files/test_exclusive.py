"""Exclusive creation and compare-and-swap, on a local disk and in a bucket."""

import errno
import threading
from pathlib import Path

import pytest
from etils import epath

from orbax_bench_core.files import exclusive
from orbax_bench_core.files.atomic import read_at_most
from orbax_bench_core.files.exclusive import (
    create_exclusively,
    is_there,
    names_in,
    read_if_there,
    swap,
)
from tests.support.bucket import bucket, served_bucket  # noqa: F401 - fixtures

exceptions = pytest.importorskip("google.api_core.exceptions")


@pytest.fixture(params=["local", "gs"])
def folder(request, tmp_path, bucket):
    return epath.Path(tmp_path if request.param == "local" else "gs://bucket/run")


def test_a_file_is_created_once(folder):
    assert create_exclusively(folder / "a" / "file", b"one")
    assert not create_exclusively(folder / "a" / "file", b"two")
    assert read_if_there(folder / "a" / "file") == b"one"
    assert names_in(folder / "a") == ["file"]
    assert names_in(folder) == ["a"]


def test_a_file_is_created_although_its_temporary_one_cannot_be_removed(tmp_path, monkeypatch):
    def unlink(path, missing_ok=False):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "unlink", unlink)
    assert create_exclusively(epath.Path(tmp_path / "file"), b"one")
    assert (tmp_path / "file").read_bytes() == b"one"


def at_once(call):
    """What eight calls at the same moment return, each with a number of its own, sorted."""
    begin, outcomes = threading.Barrier(8), []

    def one(index):
        begin.wait()
        outcomes.append(call(index))

    threads = [threading.Thread(target=one, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(outcomes)


ONE_OF_8 = [False] * 7 + [True]


def test_of_many_one_creates(folder):
    assert at_once(lambda i: create_exclusively(folder / "file", b"%d" % i)) == ONE_OF_8


@pytest.mark.nightly
def test_of_many_one_creates_and_one_swaps_on_a_server(served_bucket):
    folder = epath.Path(served_bucket) / "run"
    for turn in range(10):
        path = folder / f"file{turn}"
        assert at_once(lambda i, path=path: create_exclusively(path, b"%d" % i)) == ONE_OF_8
        held = read_if_there(path)
        assert at_once(lambda i, path=path, held=held: swap(path, held, b"2%d" % i)) == ONE_OF_8
        assert not swap(path, held, b"3")
    assert names_in(folder) == sorted(f"file{turn}" for turn in range(10))
    assert read_if_there(folder / "nothing") is None


def test_a_file_is_swapped_for_what_was_read(folder):
    path = folder / "file"
    create_exclusively(path, b"one")
    assert not swap(path, b"other", b"two")
    assert swap(path, b"one", b"two")
    assert read_if_there(path) == b"two"


def test_what_is_not_there_is_missing(folder):
    assert read_if_there(folder / "nothing" / "file") is None
    assert not is_there(folder / "nothing" / "file")
    assert names_in(folder / "nothing") == []


@pytest.mark.parametrize(
    ("failure", "number"),
    [
        (exceptions.Forbidden, errno.EACCES),
        (exceptions.TooManyRequests, errno.EIO),
        (exceptions.ServiceUnavailable, errno.EIO),
    ],
)
def test_what_the_store_refuses_is_not_missing(bucket, failure, number):
    path = epath.Path("gs://bucket/run/file")
    create_exclusively(path, b"one")
    bucket.failure = failure("no")
    calls = (
        lambda: read_if_there(path),
        lambda: is_there(path),
        lambda: names_in(path.parent),
        lambda: create_exclusively(path, b"two"),
        lambda: swap(path, b"one", b"two"),
    )
    for call in calls:
        with pytest.raises(OSError, match="no") as caught:
            call()
        assert caught.value.errno == number


def test_an_object_is_bounded_as_a_file_is(folder, monkeypatch):
    path = folder / "file"
    create_exclusively(path, b"four")
    for bounded in (read_at_most, read_if_there, exclusive._content):
        monkeypatch.setattr(bounded, "__defaults__", (3,))
    for read in (lambda: read_if_there(path), lambda: swap(path, b"four", b"five")):
        with pytest.raises(OSError, match="Larger than 3 bytes") as caught:
            read()
        assert str(path) in str(caught.value)


@pytest.mark.slow
def test_an_emulator_that_is_named_later_is_asked_from_then_on(monkeypatch):
    # Of one that is gone the client of Cloud Storage asks for two minutes.
    pytest.importorskip("google.cloud.storage")
    found = []
    for address in ("http://127.0.0.1:1", "http://127.0.0.1:2"):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        found.append(exclusive._bucket_and_name(epath.Path("gs://b/n"))[0].client.api_endpoint)
    assert found == ["http://127.0.0.1:1", "http://127.0.0.1:2"]


def test_what_is_no_folder_is_not_taken_for_an_empty_one(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    with pytest.raises(NotADirectoryError):
        names_in(tmp_path / "file")
    with pytest.raises(OSError, match="A link to what is not there"):
        names_in(tmp_path / "nowhere")
    assert names_in(tmp_path / "file" / "below") == names_in(tmp_path / "none") == []


def test_a_link_to_nothing_is_not_taken_for_a_file_that_is_missing(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    assert not create_exclusively(epath.Path(tmp_path / "link"), b"")
    with pytest.raises(OSError, match="A link to what is not there"):
        read_if_there(tmp_path / "link")
