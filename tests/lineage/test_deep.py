"""Digest of all bytes of a checkpoint: of small ones always, of large ones when asked."""

import pytest

from orbax_bench_core.lineage import check, manifest
from orbax_bench_core.publishing import publish


@pytest.fixture
def run(make_run, make_record, make_point, tmp_path):
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "arrays").write_bytes(bytes(1000))
    point = make_point(checkpoint={"path": str(folder)})
    return make_run([make_record(point, times={"save": 0.5})])


def status(run):
    found = check(run, deep=True)
    return next(each.status for each in found if each.what == "checkpoint")


def test_a_large_checkpoint_is_read_when_asked_and_remembered_until_it_is_written_anew(
    run, monkeypatch, tmp_path
):
    monkeypatch.setattr(manifest, "SMALL", 10)
    found = []
    for deep in (False, True, False):
        publish(run, deep=deep)
        found.append(status(run))
    assert found == ["unknown", "unchanged", "unchanged"]
    (tmp_path / "checkpoint" / "arrays").write_bytes(bytes(2000))
    publish(run)
    assert status(run) == "unknown"


def test_a_checkpoint_that_an_option_names_is_read_too(make_run, make_record, make_point, tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "arrays").write_bytes(bytes(1000))
    load = "orbax_load"
    point = make_point(benchmark=load, options={"checkpoint_path": str(folder)})
    run = make_run([make_record(point, times={"load": 0.5})])
    publish(run)
    assert status(run) == "unchanged"
    (folder / "arrays").write_bytes(bytes(999) + b"x")
    assert status(run) == "changed"
