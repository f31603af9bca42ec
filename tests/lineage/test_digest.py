"""Digests of records and checkpoints."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.lineage import trees
from orbax_bench_core.lineage.digests import (
    RecordDigests,
    bytes_digest,
    checkpoint_digest,
    config_digest,
    content_digest,
    file_digest,
    point_digests,
    records_digest,
)
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import Run, RunDirectory


def test_the_digest_of_a_file_is_that_of_its_content(tmp_path):
    content = b"x" * (2**20 + 7)
    (tmp_path / "f").write_bytes(content)
    assert file_digest(tmp_path / "f") == f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture
def two_points(make_run, make_record, make_point):
    points = [make_point(options={"a": a}) for a in (1, 2)]
    run = make_run([make_record(point, repeat) for point in points for repeat in range(2)])
    return run, [point.id for point in points]


def test_each_point_has_a_digest_of_its_own(two_points):
    run, ids = two_points
    found = point_digests(run.root, ids)
    assert [point.files for point in found.values()] == [2, 2]
    assert len({point.digest for point in found.values()}) == 2


def test_a_byte_in_one_record_changes_the_digest_of_its_point_alone(two_points):
    run, ids = two_points
    before = point_digests(run.root, ids)
    path = run.root / "records" / ids[1] / "repeat_1" / "host_0.json"
    path.write_text(path.read_text() + " ")
    after = point_digests(run.root, ids)
    assert after[ids[0]] == before[ids[0]]
    assert after[ids[1]] != before[ids[1]]
    assert records_digest(after) != records_digest(before)


def test_a_record_under_another_name_is_another_one(two_points):
    run, ids = two_points
    before = point_digests(run.root, ids)
    folder = run.root / "records" / ids[0]
    (folder / "repeat_1").rename(folder / "repeat_2")
    assert point_digests(run.root, ids) != before


def test_the_order_of_points_does_not_count(two_points):
    run, ids = two_points
    found = [point_digests(run.root, order) for order in (ids, ids[::-1])]
    assert records_digest(found[0]) == records_digest(found[1])


def test_records_of_other_points_are_no_part_of_a_run(two_points):
    run, ids = two_points
    assert list(point_digests(run.root, ids[:1])) == ids[:1]


def test_a_record_of_another_schema_version_has_a_digest_of_its_bytes(two_points):
    run, ids = two_points
    before = point_digests(run.root, ids)
    path = run.root / "records" / ids[0] / "repeat_0" / "host_0.json"
    path.write_text(path.read_text().replace('"schema_version": 3', '"schema_version": 4'))
    after = point_digests(run.root, ids)
    assert after[ids[0]] != before[ids[0]]
    assert after[ids[0]].files == 2
    assert after[ids[1]] == before[ids[1]]


def digests_as_read(run, ids):
    """Returns the digests of the points of a run from what was read of it."""
    digests = RecordDigests(run.root, ids)
    for _ in Run(run).by_entry(digests.add):
        pass
    return digests


def test_records_that_are_read_anyway_have_the_same_digests(two_points):
    run, ids = two_points
    assert digests_as_read(run, ids).found() == point_digests(run.root, ids)


@pytest.mark.parametrize("copy", ["repeat_1 (copy)/host_0.json", "repeat_1/host_0 (1).json"])
def test_a_copy_that_nobody_reads_is_in_the_digest_too(two_points, copy):
    run, ids = two_points
    path = run.root / "records" / ids[0] / copy
    path.parent.mkdir(exist_ok=True)
    path.write_text("{}")
    found = digests_as_read(run, ids).found()
    assert found[ids[0]].files == 3
    assert found == point_digests(run.root, ids)


def test_a_digest_is_that_of_what_was_read(two_points):
    run, ids = two_points
    before, digests = point_digests(run.root, ids), digests_as_read(run, ids)
    path = run.root / "records" / ids[1] / "repeat_1" / "host_0.json"
    path.write_text(path.read_text() + " ")
    assert digests.found() == before


def test_the_status_of_a_run_does_not_count(tmp_path):
    def digest(text):
        (tmp_path / "run.json").write_text(text)
        return config_digest(RunDirectory(str(tmp_path)))

    assert digest('{"a": 1, "status": "running"}') == digest('{"status": "complete", "a": 1}')
    assert digest('{"a": 1}') != digest('{"a": 2}')


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "checkpoint"
    for name, content in {
        "state/_METADATA": "{}",
        "state/manifest.ocdbt": "m",
        "state/d/0af": "data",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize(
    ("name", "content"),
    [("state/_METADATA", "[]"), ("state/d/0af", "other size"), ("state/d/1bf", "data")],
    ids=["metadata", "size", "name"],
)
def test_the_digest_of_a_checkpoint_sees(checkpoint, name, content):
    before = checkpoint_digest(str(checkpoint))
    (checkpoint / name).write_text(content)
    assert checkpoint_digest(str(checkpoint)) != before


def test_the_arrays_of_a_checkpoint_stay_unread(checkpoint):
    before = checkpoint_digest(str(checkpoint))
    (checkpoint / "state/d/0af").write_text("atad")
    assert checkpoint_digest(str(checkpoint)) == before


def test_a_checkpoint_that_is_not_there_has_no_digest(tmp_path):
    assert checkpoint_digest(str(tmp_path / "none")) == UNKNOWN


def test_a_pipe_is_not_waited_for(make_run, make_record):
    run = make_run([make_record()])
    (path,) = Path(run.root).glob("records/*/repeat_0/host_0.json")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="Neither a file nor a folder"):
        file_digest(str(path))
    with pytest.raises(UserError, match=f"{path}.*Neither a file nor a folder"):
        point_digests(run.root, [path.parents[1].name])


def test_what_was_just_written_is_not_read_for_the_digest_of_its_folder(tmp_path):
    for name in ("a/b", "a b/c", "a.d"):  # which are in another order by their text
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    read = bytes_digest(str(tmp_path))

    (tmp_path / "a" / "b").write_text("changed since")

    known = {str(tmp_path / "a" / "b"): content_digest("a/b")}
    assert bytes_digest(str(tmp_path), known=known) == read
    assert bytes_digest(str(tmp_path)) != read


@pytest.mark.parametrize("place", ["/proc", "/proc/self", "/sys", "/", "link"])
def test_what_the_kernel_makes_up_is_no_checkpoint(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to("/proc")
    begun = time.process_time()
    assert checkpoint_digest(place) == UNKNOWN
    assert bytes_digest(place) == UNKNOWN
    assert time.process_time() - begun < 60


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_folder_with_a_pipe_or_a_device_is_no_checkpoint(tmp_path, make):
    (tmp_path / "_METADATA").write_text("{}")
    assert checkpoint_digest(str(tmp_path)) != UNKNOWN
    make(tmp_path / "array")
    assert checkpoint_digest(str(tmp_path)) == UNKNOWN
    assert bytes_digest(str(tmp_path)) == UNKNOWN


@pytest.mark.parametrize(("name", "known"), [("notes.txt", False), ("_METADATA", True)])
def test_a_large_folder_without_a_file_of_a_checkpoint_is_none(tmp_path, monkeypatch, name, known):
    monkeypatch.setattr(trees, "_MOST_STRANGE", 10)
    (tmp_path / name).write_text("{}")
    for number in range(20):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "array.npy").touch()
    assert (checkpoint_digest(str(tmp_path)) != UNKNOWN) is known


def test_a_run_directory_may_have_the_name_of_a_pattern(make_run, make_record):
    record = make_record()
    run = make_run([record], folder="results[1]")
    assert point_digests(run.root, [record.point_id]).keys() == {record.point_id}
