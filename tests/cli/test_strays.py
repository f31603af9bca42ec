"""Files among the records that are not what their place says: named, and left out."""

import builtins
import io
import json
import os
import shutil

import pytest

from orbax_bench_core import UserError, load_run
from orbax_bench_core.baselines import publish_run
from tests.support.paired_runs import make_paired_run, make_separate_run  # noqa: F401 - fixtures


@pytest.fixture
def paired(make_paired_run):
    """The folder of the records of a paired run of five blocks."""
    run = make_paired_run(1, folder="runs/one")
    (folder,) = (run.root / "records").iterdir()
    return run, folder


def copy_of_a_repeat(folder):
    shutil.copytree(folder / "repeat_3", folder / "repeat_20")
    return "repeat_20/host_0.json: the record of repeat 3 in a place of repeat 20"


def copy_over(folder):
    shutil.copy(folder / "repeat_3" / "host_0.json", folder / "repeat_4" / "host_0.json")
    return "repeat_4/host_0.json: the record of repeat 3 in a place of repeat 4"


def copy_beside(folder):
    shutil.copy(folder / "repeat_3" / "host_0.json", folder / "repeat_3" / "host_1.json")
    return "repeat_3/host_1.json: the record of host 0 in a place of host 1"


def old_folder(folder):
    shutil.copytree(folder / "repeat_3", folder / "repeat_old")
    return "repeat_old: no place of a record has this name: move it out of the run directory"


def padded_number(folder):
    shutil.copytree(folder / "repeat_3", folder / "repeat_03")
    return "repeat_03: no place of a record has this name"


def editors_backup(folder):
    shutil.copy(folder / "repeat_3" / "host_0.json", folder / "repeat_3" / "host_0 (1).json")
    return "repeat_3/host_0 (1).json: no place of a record has this name"


def torn(folder):
    (folder / "repeat_20").mkdir()
    (folder / "repeat_20" / "host_0.json").write_text('{"schema_version": 4, "run_id"')
    return "repeat_20/host_0.json: torn: not readable"


def too_large(folder):
    (folder / "repeat_20").mkdir()
    with (folder / "repeat_20" / "host_0.json").open("wb") as file:
        file.truncate(2**26 + 1)
    return "repeat_20/host_0.json: larger than 64 MiB, which no record is: move it out"


def changed(folder, **fields):
    shutil.copytree(folder / "repeat_3", folder / "repeat_20")
    path = folder / "repeat_20" / "host_0.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "repeat": 20, **fields}))
    return "repeat_20/host_0.json: torn: not readable"


def foreign(folder):
    changed(folder, run_id="another")
    return "repeat_20/host_0.json: the record of run another in a place of run run001"


def newer(folder):
    shutil.copytree(folder / "repeat_3", folder / "repeat_20")
    path = folder / "repeat_20" / "host_0.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 6}))
    return (
        "repeat_20/host_0.json: written by a newer orbax-bench (schema 6; this one reads "
        "3, 4 and 5): upgrade orbax-bench, or move it out of the run directory"
    )


def newer_of_the_same_number(folder):
    changed(folder, knew_more=1)
    return (
        "repeat_20/host_0.json: written by a newer orbax-bench (this one knows no knew_more): "
        "upgrade orbax-bench, or move it out of the run directory"
    )


def another_point(folder):
    shutil.copytree(folder, folder.with_name("0123456789ab"))
    return "0123456789ab: no point of this run has this id"


def file_for_a_folder(folder):
    (folder / "repeat_20").write_text("")
    return "repeat_20: no place of a record has this name"


STRAYS = [
    file_for_a_folder,
    copy_of_a_repeat,
    copy_beside,
    old_folder,
    padded_number,
    editors_backup,
    torn,
    too_large,
    foreign,
    newer,
    newer_of_the_same_number,
    another_point,
]
COMMANDS = ["report", "compare", "history", "calibrate"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stray", "command"),
    [
        *((stray, "report") for stray in STRAYS),
        *((old_folder, command) for command in COMMANDS[1:]),
    ],
)
def test_a_stray_is_named_and_the_rest_is_used(orbax_bench, paired, tmp_path, stray, command):
    run, folder = paired
    place = "runs" if command in ("history", "calibrate") else "runs/one"
    before = orbax_bench(command, tmp_path / place)
    assert (before.code, before.err) == (0, "") or command == "compare"
    said = stray(folder)
    outcome = orbax_bench(command, tmp_path / place)
    assert outcome.code == 1, outcome
    assert f"left out: {run.root}/records/" in outcome.out
    assert said in outcome.out
    rest = [line for line in outcome.out.splitlines() if "left out" not in line]
    if command == "report":  # its headline says so, and what stands above it is the same
        assert set(before.out.partition("\n\n")[0].splitlines()) <= set(rest)
    else:
        assert rest == before.out.splitlines()


def test_ten_are_named_and_the_others_counted(orbax_bench, paired):
    run, folder = paired
    for index in range(14):
        (folder / f"copy {index}").mkdir()
    outcome = orbax_bench("report", run.root, "--details")
    lines = outcome.out.splitlines()
    named = list(dict.fromkeys(line for line in lines if line.startswith("- left out:")))
    assert len(named) == 11
    assert named[-1] == f"- left out: {run.root}: and 4 more"


@pytest.mark.slow
def test_pages_and_json_name_them_too(orbax_bench, paired, tmp_path):
    run, folder = paired
    said = old_folder(folder)
    orbax_bench("report", run.root)
    assert said in (run.root / "report.md").read_text().replace("\\_", "_")
    assert said in (run.root / "report.html").read_text()
    for command in ("history", "calibrate"):
        outcome = orbax_bench(command, tmp_path / "runs", "--json")
        assert outcome.code == 1
        (line,) = json.loads(outcome.out)["left_out"]
        assert line.endswith(said)
    orbax_bench("compare", run.root, "--html", tmp_path / "page.html")
    assert said in (tmp_path / "page.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["compare", "history"])
def test_a_newer_record_in_the_place_of_a_repeat_ends_nothing(
    orbax_bench, paired, tmp_path, command
):
    _, folder = paired
    path = folder / "repeat_3" / "host_0.json"
    path.write_text(path.read_text().replace('"schema_version": 5', '"schema_version": 6'))
    outcome = orbax_bench(command, tmp_path / "runs" / "one")
    assert outcome.code == 1, outcome
    assert outcome.err == ""
    assert f"left out: {path}: written by a newer orbax-bench (schema 6" in outcome.out


def test_from_python_they_are_asked_for(paired):
    run, folder = paired
    said = old_folder(folder)
    assert load_run(str(run.root)).strays() == (f"{run.root}/records/{folder.name}/{said}",)


def test_what_a_killed_writer_has_left_is_no_stray(orbax_bench, paired):
    run, folder = paired
    (folder / "repeat_3" / ".host_0.json.1234.tmp").write_text("{")
    assert orbax_bench("report", run.root).code == 0


def test_a_stray_of_either_side_is_named_in_a_comparison_of_two_runs(
    orbax_bench, make_separate_run
):
    one, other = make_separate_run(1), make_separate_run(2)
    (folder,) = (one.root / "records").iterdir()
    old_folder(folder)
    for places in ((one.root, other.root), (other.root, one.root)):
        outcome = orbax_bench("compare", *places)
        assert outcome.code == 1
        assert f"left out: {one.root}/records/{folder.name}/repeat_old" in outcome.out


@pytest.mark.parametrize("stray", [copy_over, old_folder])
def test_a_capture_names_them_and_takes_what_is_whole(
    orbax_bench, make_run, make_point, make_record, tmp_path, stray
):
    points = [make_point(), make_point(options={"use_ocdbt": False}, label="use_ocdbt=false")]
    records = [make_record(point, index) for point in points for index in range(5)]
    run = make_run(records, num_repeats=5)
    said = stray(run.root / "records" / points[0].id)
    outcome = orbax_bench("baseline", "capture", tmp_path / "registry", run.root)
    assert outcome.code == 1, outcome
    assert f"left out: {run.root}/records/{points[0].id}/{said}" in outcome.out
    incomplete = stray is copy_over
    assert ("4 of 5 repeats have a record that can be used" in outcome.out) is incomplete
    assert f"captured {1 if incomplete else 2} point" in outcome.out


def test_of_a_run_that_has_strays_alone_nothing_is_captured(
    orbax_bench, make_run, make_record, tmp_path
):
    run = make_run([make_record(repeat=repeat) for repeat in range(5)], num_repeats=5)
    (folder,) = (run.root / "records").iterdir()
    said = copy_over(folder)
    outcome = orbax_bench("baseline", "capture", tmp_path / "registry", run.root)
    assert outcome.code == 2
    assert f"left out: {run.root}/records/{folder.name}/{said}" in outcome.out
    assert "resume the run" in outcome.out
    with pytest.raises(UserError, match="the record of repeat 3 in a place of repeat 4"):
        publish_run(run, str(tmp_path / "registry"), arm="candidate", promote=False, revision=None)


@pytest.mark.parametrize(
    ("what", "command"),
    [("folder", "report"), ("run.json", "report"), *(("record", one) for one in COMMANDS)],
)
def test_what_cannot_be_read_is_not_taken_for_missing(
    orbax_bench, paired, monkeypatch, command, what
):
    run, folder = paired
    broken = {
        "record": folder / "repeat_3" / "host_0.json",
        "folder": folder,
        "run.json": run.root / "run.json",
    }[what]
    fail_on(monkeypatch, broken)
    outcome = orbax_bench(command, run.root)
    assert outcome.code == 1, outcome
    assert outcome.err.startswith(f"error: {broken}: cannot be read ([Errno 5] ")
    assert "does not mean that it is missing" in outcome.err


def fail_on(monkeypatch, broken):
    """Has the disk fail at one path."""

    def failing(real):
        def call(path=".", *arguments, **options):
            if str(path) == str(broken):
                raise OSError(5, "Input/output error", str(path))
            return real(path, *arguments, **options)

        return call

    calls = {builtins: ["open"], io: ["open"], os: ["open", "stat", "scandir", "listdir"]}
    for module, names in calls.items():
        for name in names:
            monkeypatch.setattr(module, name, failing(getattr(module, name)))
