"""Links inside a run directory: nothing is written through them, and nothing behind them goes."""

import os
from pathlib import Path

import pytest

from orbax_bench_core.config import load_suite
from orbax_bench_core.leases import held
from orbax_bench_core.lineage import write_planned
from orbax_bench_core.publishing import publish
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.sweep import expand
from tests.golden.support import orbax_bench

SUITE = """
suite_name: small
num_repeats: 1
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


@pytest.fixture
def outside(tmp_path):
    """A folder that is somebody else's, with a file in every place that a run knows."""
    folder = tmp_path / "outside"
    for name in ("repeat_0", "warmup_0", "point", "point/repeat_0", "series/host_0"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "precious").write_text("precious")
    return folder


@pytest.fixture
def precious(outside):
    """Returns what lies outside, as text by path."""

    def found():
        return {
            str(path.relative_to(outside)): path.read_text()
            for path in sorted(outside.rglob("*"))
            if path.is_file()
        }

    before = found()
    yield found
    assert found() == before


@pytest.fixture
def record(make_record):
    return make_record(times={"save": 0.5})


@pytest.fixture
def run(make_run, record):
    return make_run([record])


def link(path, to):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)
    return path


def test_a_link_in_the_place_of_data_goes_and_what_it_leads_to_stays(
    run, record, outside, precious
):
    data = run.data_path(record.point, 0, warmup=False)
    link(data, outside / "repeat_0")
    run.remove_data(record.point, 0, warmup=False)
    assert not os.path.lexists(data)


def test_a_link_among_data_goes_and_what_it_leads_to_stays(run, record, outside, precious):
    data = run.data_path(record.point, 0, warmup=False)
    link(data / "d", outside)
    link(data / "array", outside / "point" / "precious")
    run.remove_data(record.point, 0, warmup=False)
    assert not data.exists()


def test_data_behind_a_link_are_not_removed(run, record, outside, precious):
    point = run.data_path(record.point, 0, warmup=False).parent
    link(point, outside)
    with pytest.raises(OSError, match="A link, through which nothing is written or removed"):
        run.remove_data(record.point, 0, warmup=False)


def test_data_on_a_storage_are_not_removed_behind_a_link(
    run, make_point, outside, precious, tmp_path
):
    point = make_point(storage=str(tmp_path / "storage"))
    data = run.data_path(point, 0, warmup=False)
    link(data.parent, outside)
    with pytest.raises(OSError, match="A link"):
        run.remove_data(point, 0, warmup=False)


def test_a_run_directory_and_a_storage_may_be_links(tmp_path, record, make_run, make_point):
    (tmp_path / "disk").mkdir()
    link(tmp_path / "run", tmp_path / "disk")
    link(tmp_path / "storage", tmp_path / "disk")
    run = make_run([record])
    for point in (record.point, make_point(storage=str(tmp_path / "storage"))):
        data = run.data_path(point, 0, warmup=False)
        data.mkdir(parents=True)
        run.remove_data(point, 0, warmup=False)
        assert not data.exists()
    publish(run)
    assert (tmp_path / "disk" / "report.html").is_file()


@pytest.mark.parametrize("where", ["records", "records/POINT", "records/POINT/repeat_1"])
def test_no_record_is_written_through_a_link(run, make_record, outside, precious, where):
    record = make_record(repeat=1)
    place = run.root / where.replace("POINT", record.point_id)
    if place.exists():
        place.rename(run.root / "away")
    link(place, outside)
    with pytest.raises(OSError, match="A link"):
        run.write_record(record)


@pytest.mark.parametrize("folder", ["leases", "batches"])
def test_no_bookkeeping_is_written_through_a_link(run, outside, precious, folder):
    link(run.root / folder, outside)
    with pytest.raises(OSError, match="A link"):
        if folder == "leases":
            with held(run.root, "run", command="c", say=print):
                pass
        else:
            write_planned(run.root, [["a"]])


@pytest.mark.parametrize(
    "where", ["tensorboard", "tensorboard/SERIES", "tensorboard/SERIES/host_0"]
)
def test_no_event_file_is_written_or_removed_through_a_link(run, outside, tmp_path, where):
    publish(run)
    file = Path(next((run.root / "tensorboard").glob("*/host_0/events*")))
    old = outside / "series" / "host_0" / file.name.replace("tfevents.", "tfevents.9")
    old.write_text("precious")
    before = sorted(outside.rglob("*"))
    place = run.root / where.replace("SERIES", file.parents[1].name)
    place.rename(tmp_path / "away")
    link(place, outside)
    with pytest.raises(OSError, match="A link"):
        publish(run)
    assert sorted(outside.rglob("*")) == before


def test_old_event_files_behind_a_link_stay(run, outside):
    publish(run)
    file = next(Path(run.root / "tensorboard").rglob("host_0/events*"))
    old = outside / "series" / "host_0" / file.name.replace("tfevents.", "tfevents.9")
    old.write_text("precious")
    link(run.root / "tensorboard" / "other", outside / "series")
    publish(run)
    assert old.exists()


def test_pages_take_the_place_of_links(run, outside, precious):
    for name in ("report.html", "lineage.json", "samples.parquet", "metrics.json"):
        link(run.root / name, outside / "point" / "precious")
    publish(run)
    assert not any(path.is_symlink() for path in Path(run.root).iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("--keep-data",), ()], ids=["kept", "removed"])
def test_a_run_measures_and_removes_nothing_behind_a_link(tmp_path, outside, precious, flags):
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    [point] = expand(load_suite(str(suite))).points
    run = RunDirectory(str(tmp_path / "run"))
    link(run.data_path(point, 0, warmup=False).parent, outside)
    ended = orbax_bench("run", suite, "-o", run.root, "--no-limits", "--no-lock", *flags)
    assert ended.code == 2
    assert ended.err.startswith(f"error: {run.root}/{point.directory}: A link, through which")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logs", "hlo_dump", "leases", "records", "hlo_dump/x", "logs/x"])
def test_a_run_begins_nothing_behind_a_link(tmp_path, outside, precious, name):
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    flags = ("--no-limits", "--no-lock", "--enable-hlo-dump")
    words = ("run", suite, "-o", tmp_path / "run", *flags)
    if name == "logs/x":
        assert orbax_bench(*words).code == 0
        [log] = (tmp_path / "run" / "logs").iterdir()
        log.unlink()
        name = f"logs/{log.name}"
        suite.write_text(SUITE.replace("repeats: 1", "repeats: 2"))
    to = outside / "point" / "precious" if "/" in name else outside
    link(tmp_path / "run" / name, to)
    ended = orbax_bench(*words)
    assert ended.code == 2, ended
    assert f"run/{name}" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.slow
def test_a_run_replaces_a_link_to_data_by_data(tmp_path, outside, precious):
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    [point] = expand(load_suite(str(suite))).points
    run = RunDirectory(str(tmp_path / "run"))
    data = Path(run.data_path(point, 0, warmup=False))
    link(data, outside / "repeat_0")
    assert (
        orbax_bench("run", suite, "-o", run.root, "--no-limits", "--no-lock", "--keep-data").code
        == 0
    )
    assert data.is_dir()
    assert not data.is_symlink()


@pytest.mark.slow
def test_scratch_on_a_local_disk_is_not_emptied_behind_a_link(tmp_path, outside, precious):
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    [point] = expand(load_suite(str(suite))).points
    link(tmp_path / "disk" / point.directory, outside)
    flags = ("--local-directory", tmp_path / "disk")
    ended = orbax_bench("run", suite, "-o", tmp_path / "run", "--no-limits", "--no-lock", *flags)
    assert ended.code in (1, 2)
    assert "A link, through which" in ended.out + ended.err
