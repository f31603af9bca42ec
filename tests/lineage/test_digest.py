"""Digests of records and checkpoints."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.lineage import digests
from orbax_bench_core.provenance import UNKNOWN


def test_the_digest_of_a_file_is_that_of_its_content(tmp_path):
    content = b"x" * (2**20 + 7)
    (tmp_path / "f").write_bytes(content)
    assert digests.file_digest(tmp_path / "f") == f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture
def two_points(make_run, make_record, make_point):
    points = [make_point(options={"a": a}) for a in (1, 2)]
    run = make_run([make_record(point, repeat) for point in points for repeat in range(2)])
    return run, [point.id for point in points]


def test_a_byte_in_one_record_changes_the_digest_of_its_point_alone(two_points):
    run, ids = two_points
    before = digests.point_digests(run.root, ids)
    assert [point.files for point in before.values()] == [2, 2]
    assert len({point.digest for point in before.values()}) == 2
    path = run.root / "records" / ids[1] / "repeat_1" / "host_0.json"
    # Even where it makes the record one of another release, which nothing reads.
    path.write_text(path.read_text().replace('"schema_version": 5', '"schema_version": 6'))
    after = digests.point_digests(run.root, ids)
    assert after[ids[0]] == before[ids[0]]
    assert after[ids[1]] != before[ids[1]]
    assert after[ids[1]].files == 2
    assert digests.records_digest(after) != digests.records_digest(before)


def test_a_record_under_another_name_is_another_one(two_points):
    run, ids = two_points
    before = digests.point_digests(run.root, ids)
    folder = run.root / "records" / ids[0]
    (folder / "repeat_1").rename(folder / "repeat_2")
    assert digests.point_digests(run.root, ids) != before


def test_the_order_of_points_does_not_count_and_other_points_are_no_part_of_a_run(two_points):
    run, ids = two_points
    found = [digests.point_digests(run.root, order) for order in (ids, ids[::-1])]
    assert digests.records_digest(found[0]) == digests.records_digest(found[1])
    assert list(digests.point_digests(run.root, ids[:1])) == ids[:1]


@pytest.mark.parametrize("copy", ["repeat_1 (copy)/host_0.json", "repeat_1/host_0 (1).json"])
def test_a_copy_that_nobody_reads_is_in_the_digest_too(two_points, copy):
    run, ids = two_points
    path = run.root / "records" / ids[0] / copy
    path.parent.mkdir(exist_ok=True)
    path.write_text("{}")
    assert digests.point_digests(run.root, ids)[ids[0]].files == 3


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
def test_the_digest_of_a_checkpoint_sees_all_but_the_values_of_arrays(checkpoint, name, content):
    before = digests.checkpoint_digest(str(checkpoint))
    (checkpoint / "state/d/0af").write_text("atad")
    assert digests.checkpoint_digest(str(checkpoint)) == before
    (checkpoint / name).write_text(content)
    assert digests.checkpoint_digest(str(checkpoint)) != before


def test_a_checkpoint_that_is_not_there_has_no_digest(tmp_path):
    assert digests.checkpoint_digest(str(tmp_path / "none")) == UNKNOWN


def test_a_pipe_is_not_waited_for(make_run, make_record):
    run = make_run([make_record()])
    (path,) = Path(run.root).glob("records/*/repeat_0/host_0.json")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="Neither a file nor a folder"):
        digests.file_digest(str(path))
    with pytest.raises(UserError, match=f"{path}.*Neither a file nor a folder"):
        digests.point_digests(run.root, [path.parents[1].name])


def test_the_digest_of_a_folder_has_its_files_in_the_order_of_the_parts_of_their_names(tmp_path):
    names = ("a/b", "a b/c", "a.d")  # which are in another order by their text
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    lines = (f"{name} sha256:{hashlib.sha256(name.encode()).hexdigest()}\n" for name in names)
    whole = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert digests.bytes_digest(str(tmp_path)) == f"sha256:{whole}"


@pytest.mark.parametrize("place", ["/proc", "/proc/self", "/sys", "/", "link"])
def test_what_the_kernel_makes_up_is_no_checkpoint(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to("/proc")
    begun = time.process_time()
    assert digests.checkpoint_digest(place) == UNKNOWN
    assert digests.bytes_digest(place) == UNKNOWN
    assert time.process_time() - begun < 60


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_folder_with_a_pipe_or_a_device_is_no_checkpoint(tmp_path, make):
    (tmp_path / "_METADATA").write_text("{}")
    assert digests.checkpoint_digest(str(tmp_path)) != UNKNOWN
    make(tmp_path / "array")
    assert digests.checkpoint_digest(str(tmp_path)) == UNKNOWN
    assert digests.bytes_digest(str(tmp_path)) == UNKNOWN
