"""The room for the checkpoints of a run, on each disk that it writes to."""

import shutil

import pytest

from orbax_bench_core.config import parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import RunSettings, Session
from orbax_bench_core.experiments.room import check_room, rooms

MIB = 2**20
SUITE = """
suite_name: s
num_repeats: 4
checkpoint_config: {{spec: {{w: {{dtype: uint8, shape: [{size}]}}}}}}
benchmarks: [{{generator: save_restore, options: {{use_ocdbt: [true, false]}}}}]
{more}
"""


@pytest.fixture
def session(tmp_path):
    """Begins a run, of a checkpoint of so many MiB; returns it, and what it says."""
    begun = []

    def begin(size=1, more="", **settings):
        said = []
        begun.append(said)
        suite = parse_suite(SUITE.format(size=size * MIB, more=more))
        root = str(tmp_path / "not" / f"there{len(begun)}")
        return Session.begin(suite, root, settings=RunSettings(**settings), say=said.append), said

    return begin


@pytest.fixture
def free(monkeypatch):
    """Sets the free space of every disk, in MiB."""

    def have(mib):
        usage = shutil.disk_usage("/")._replace(free=mib * MIB)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    return have


def test_what_is_kept_counts_once_for_each_repeat(session):
    (room,) = rooms(session(keep_data=True)[0])
    assert (room.needed, room.largest) == (8 * MIB, MIB)
    (room,) = rooms(session(more="execution: {keep_data: true}")[0])
    assert (room.needed, room.largest) == (8 * MIB, MIB)


def test_each_storage_is_a_disk_of_its_own_and_buckets_are_not_known(
    session, tmp_path, monkeypatch
):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    begun, _ = session(more=f"storage: [gs://bucket/x, {tmp_path}]", keep_data=True)
    (room,) = rooms(begun)
    assert room.needed == 8 * MIB


def test_a_disk_that_will_be_full_is_a_warning_that_says_what_to_do(session, free):
    free(7)
    begun, said = session(keep_data=True)
    check_room(begun)
    (line,) = said
    assert "has 7 MiB free, and this run will keep 8 MiB of checkpoints there" in line
    assert "without --keep-data and `execution.keep_data`" in line


def test_a_checkpoint_that_does_not_fit_is_refused(session, free):
    free(7)
    begun, _ = session(size=100)
    with pytest.raises(UserError, match="has 7 MiB free, and one checkpoint of this suite has 100"):
        check_room(begun)


def test_a_disk_that_cannot_be_asked_stops_nothing(session, monkeypatch):
    def unknown(_):
        raise PermissionError

    monkeypatch.setattr(shutil, "disk_usage", unknown)
    assert rooms(session(keep_data=True)[0]) == []
