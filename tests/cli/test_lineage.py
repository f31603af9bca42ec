"""`orbax-bench lineage`."""

import json
import re
import shutil
import time
import tomllib
from pathlib import Path

import pytest

from orbax_bench_core.analysis.verdicts import compare_stored
from orbax_bench_core.baselines import Registry, capture_run
from orbax_bench_core.engine import finish
from orbax_bench_core.publishing import publish, publish_verdicts
from orbax_bench_core.records import RunDirectory
from tests.support.paired_runs import make_paired_run, make_separate_run  # noqa: F401 - fixtures
from tests.support.shown import assert_accepted

STORED = "projects/p-1/locations/us-central1/metadataStores/default/artifacts/7"


@pytest.fixture
def walk(orbax_bench):
    """Asks for the lineage of something; returns the exit code and what was found by its name."""

    def ask(given, *flags):
        outcome = orbax_bench("lineage", given, "--json", *flags)
        said = json.loads(outcome.out)
        assert (said["unchanged"] is False) is (outcome.code == 1)
        return outcome.code, {finding["what"]: finding for finding in said["findings"]}

    return ask


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "_METADATA").write_text("{}")
    (folder / "arrays").write_bytes(bytes(1000))
    return folder


@pytest.fixture
def run(make_run, make_record, make_point, checkpoint):
    point = make_point(checkpoint={"path": str(checkpoint)})
    made = make_run([make_record(point, times={"save": 0.5})])
    publish(made)
    return made


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("judged") / "run"


@pytest.fixture
def judged(make_paired_run, kept, tmp_path):
    """A run with its verdicts: written once and copied, as none of its files names its place."""
    if not kept.exists():
        made = make_paired_run(0)
        publish(made)
        publish_verdicts(made, compare_stored(str(made.root), None))
        shutil.move(made.root, kept)
    return RunDirectory(str(shutil.copytree(kept, tmp_path / "day000")))


@pytest.fixture
def warned(make_separate_run):
    before, after = make_separate_run(0), make_separate_run(1)
    for made in (before, after):
        publish(made)
    publish_verdicts(after, compare_stored(str(before.root), str(after.root)))
    return before, after


def test_a_verdict_leads_to_samples_records_and_suite(walk, judged):
    code, found = walk(judged.root / "verdicts.json")
    assert code == 0
    order = "verdicts samples records checkpoint environment config image"
    assert sorted(found) == sorted(order.split())
    assert [found[what]["depth"] for what in order.split()] == [0, 1, 2, 3, 3, 3, 4]
    assert found["verdicts"]["inputs"] == ["records", "samples.parquet"]
    assert {found[what]["status"] for what in ("verdicts", "samples", "records", "config")} == {
        "unchanged"
    }


def test_records_lead_to_their_environment_and_the_checkpoint_that_they_loaded(
    walk, run, checkpoint
):
    code, found = walk(run.root)
    assert code == 0
    assert found["checkpoint"]["name"] == str(checkpoint)
    assert found["checkpoint"]["status"] == "unknown"
    assert found["environment"]["details"]["jax"] == "0.10.2"
    assert found["image"]["name"] == "unknown"


NOT_READ = "names and sizes unchanged; contents not read: --deep"


def flip(file):
    """Flips one bit in the middle of a file, which keeps its size."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def test_arrays_that_were_not_read_are_not_called_unchanged(orbax_bench, run, checkpoint):
    flip(checkpoint / "arrays")
    outcome = orbax_bench("lineage", run.root)
    line = next(line for line in outcome.out.splitlines() if str(checkpoint) in line)
    assert line.rstrip().endswith(NOT_READ)
    assert "? UNKNOWN: nothing differs, but not all was read: " in outcome.out
    assert len(outcome.out.splitlines()) <= 20
    assert_accepted(outcome.out)
    found = json.loads(orbax_bench("lineage", run.root, "--json").out)
    assert (outcome.code, found["unchanged"]) == (0, "unknown")


def test_all_bytes_that_were_read_are_unchanged(walk, orbax_bench, run):
    code, found = walk(run.root, "--deep")
    assert (code, found["checkpoint"]["status"]) == (0, "unchanged")
    assert json.loads(orbax_bench("lineage", run.root, "--deep", "--json").out)["unchanged"] is True


def test_a_flipped_bit_is_found(walk, run, checkpoint):
    flip(checkpoint / "arrays")
    code, found = walk(run.root, "--deep")
    assert (code, found["checkpoint"]["status"]) == (1, "changed")
    assert found["checkpoint"]["details"]["digest of"] == "all bytes"


def test_where_all_bytes_were_never_noted_they_are_unknown(walk, run):
    path = run.root / "lineage.json"
    content = json.loads(path.read_text())
    del content["all_bytes"]
    path.write_text(json.dumps(content))
    code, found = walk(run.root, "--deep")
    assert (code, found["checkpoint"]["status"]) == (0, "unknown")
    assert "nobody noted a digest of all bytes" in found["checkpoint"]["compared"]


def test_a_file_among_records_that_is_none_is_refused(orbax_bench, run):
    [record] = run.root.glob("records/*/*/host_0.json")
    (record.parent / "notes.txt").write_text("mine")
    outcome = orbax_bench("lineage", record.parent / "notes.txt")
    assert (outcome.code, "it is no record" in outcome.err) == (2, True)


@pytest.mark.parametrize(
    "name", ["verdicts.json", "verdicts.html", "verdicts.md", "samples.parquet", "report.html"]
)
def test_a_file_of_a_run_has_its_own_lineage(orbax_bench, judged, name):
    outcome = orbax_bench("lineage", judged.root / name, "--json")
    assert outcome.code == 0
    names = [finding["name"] for finding in json.loads(outcome.out)["findings"]]
    assert names[0] == name
    assert "records" in names


def changed(orbax_bench, given):
    """Returns the exit code, and the names of what was found to be no more as it was."""
    outcome = orbax_bench("lineage", given, "--json")
    found = json.loads(outcome.out)["findings"]
    return outcome.code, [one["name"] for one in found if one["status"] in ("changed", "missing")]


def test_any_file_that_was_edited_or_is_gone_is_named(orbax_bench, judged, capsys):
    finish(str(judged.root))
    capsys.readouterr()
    noted = set(json.loads((judged.root / "lineage.json").read_text())["made"]) - {"records"}
    pages = {"verdicts.md", "verdicts.html", "junit.xml", "ending.md", "report.md", "report.html"}
    assert {"verdicts.json", "summary.csv", "tensorboard"} | pages <= noted
    assert changed(orbax_bench, judged.root) == (0, [])
    for name in noted:
        path = Path(judged.root / name)
        file = next(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else path
        content = file.read_bytes()
        file.write_bytes(content + b" ")
        assert changed(orbax_bench, judged.root) == (1, [name])
        file.unlink()
        assert changed(orbax_bench, judged.root) == (1, [name])
        file.write_bytes(content)


def test_all_that_a_run_directory_shows_to_people_is_noted(judged):
    finish(str(judged.root))
    noted = set(json.loads((judged.root / "lineage.json").read_text())["made"])
    shown = {path.name for path in Path(judged.root).iterdir()}
    # Records and suite have digests of their own, logs are appended to, leases come and go.
    assert shown - noted == {"run.json", "lineage.json"} | shown & {"logs", "leases", "batches"}


def test_a_page_that_was_put_beside_the_records_is_named(orbax_bench, run):
    assert orbax_bench("lineage", run.root).code == 0
    (run.root / "verdicts.html").write_text("PASS")
    outcome = orbax_bench("lineage", run.root)
    assert outcome.code == 1
    assert "✗ BROKEN: page verdicts.html is not recorded; " in outcome.out
    assert_accepted(outcome.out)


def test_a_record_that_was_edited_has_changed_and_its_point_is_named(walk, judged):
    path = next(judged.root.glob("records/*/*/host_0.json"))
    path.write_text(path.read_text().replace('"duration_s": 1.0', '"duration_s": 2.0'))
    code, found = walk(judged.root)
    assert code == 1
    assert found["records"]["status"] == "changed"
    assert path.parent.parent.name in found["records"]["details"]["differs"]


def test_a_record_that_is_gone_is_a_change(walk, judged):
    next(judged.root.glob("records/*/*/host_0.json")).unlink()
    code, found = walk(judged.root)
    assert (code, found["records"]["status"]) == (1, "changed")


def test_a_rule_that_was_edited_in_the_suite_has_changed(walk, judged):
    path = judged.root / "run.json"
    path.write_text(path.read_text().replace('"num_repeats": 1', '"num_repeats": 7'))
    code, found = walk(judged.root)
    assert (code, found["config"]["status"]) == (1, "changed")


def test_a_suite_that_was_overridden_was_not_edited(walk, orbax_bench, write_suite, tmp_path):
    suite = write_suite()
    for folder, flags, said in (
        ("plain", (), "(still the same)"),
        ("changed", ("--processes", 2), "(not what ran: edited since, or overridden"),
    ):
        planned = orbax_bench("step", "plan-sweep", suite, "-o", tmp_path / folder, *flags)
        assert planned.code == 0, planned.err
        _, found = walk(tmp_path / folder)
        assert said in found["config"]["details"]["file"]


def test_a_checkpoint_that_is_gone_is_missing(walk, run, checkpoint):
    shutil.rmtree(checkpoint)
    code, found = walk(run.root)
    assert (code, found["checkpoint"]["status"]) == (1, "missing")


def test_a_verdict_of_other_records_than_those_of_now_shows(walk, judged, make_record):
    point = judged.read_info().expansion.points[0]
    fields = {"arm": "candidate", "block": 99, "run_id": judged.read_info().run_id}
    judged.write_record(make_record(point, 99, times={"save": 1.0}, **fields))
    publish(judged)  # tables and pages are those of the records of now, the verdict is not
    assert walk(judged.root / "report.html")[0] == 0
    code, found = walk(judged.root / "verdicts.json")
    assert code == 1
    assert found["verdicts"]["status"] == "unchanged"
    assert found["samples"]["status"] == "changed"


def test_a_comparison_leads_to_its_baseline(walk, warned):
    before, after = warned
    code, found = walk(after.root)
    assert code == 0
    assert found["baseline"]["name"] == str(before.root)
    assert found["baseline"]["status"] == "unchanged"


def test_a_baseline_that_means_something_else_by_now_has_changed_or_is_missing(walk, warned):
    before, after = warned
    next(before.root.glob("records/*/*/host_0.json")).unlink()
    code, found = walk(after.root)
    assert (code, found["baseline"]["status"]) == (1, "changed")
    shutil.rmtree(before.root)
    code, found = walk(after.root)
    assert (code, found["baseline"]["status"]) == (1, "missing")


def test_a_run_of_an_earlier_release_was_never_recorded(walk, orbax_bench, run):
    (run.root / "lineage.json").unlink()
    code, found = walk(run.root / "samples.parquet")
    assert code == 1
    assert found["samples"]["status"] == found["records"]["status"] == "not recorded"
    assert_accepted(orbax_bench("lineage", run.root).out)


def test_a_run_that_was_moved_is_still_the_same(walk, judged, tmp_path):
    shutil.move(judged.root, tmp_path / "elsewhere")
    assert walk(tmp_path / "elsewhere")[0] == 0


@pytest.mark.parametrize("given", ["capture", "description", "point"])
def test_a_capture_leads_to_the_records_inside(walk, run, tmp_path, given):
    registry = Registry(str(tmp_path / "registry"))
    capture = capture_run(run, registry).capture
    folder = registry.root / capture.reference
    [point] = folder.glob("*.json")
    paths = {"capture": folder, "description": folder.with_suffix(".json"), "point": point}
    code, found = walk(paths[given])
    assert code == 0
    assert list(found) == ["baseline", "records", "environment", "image"]
    assert {link["status"] for link in found.values()} == {"not checked"}
    assert found["records"]["details"]["points"] == "1"


def test_what_has_changed_is_told_first_and_details_say_what_was_made_of_it(
    orbax_bench, run, checkpoint
):
    (checkpoint / "_METADATA").write_text('{"other": 1}')
    given = run.root / "samples.parquet"
    said = f"✗ BROKEN: checkpoint {checkpoint} has changed; of 4 digests 3 unchanged, 1 changed"
    assert said in orbax_bench("lineage", given).out
    out = orbax_bench("lineage", given, "--details").out
    assert re.search(r"samples +samples.parquet +unchanged +sha256:", out)
    assert re.search(r"· records +records +unchanged", out)
    assert re.search(r"· · checkpoint .*changed +sha256:\w+ was", out, re.DOTALL)
    assert said in out


def test_a_file_of_a_run_that_nobody_noted_is_refused(orbax_bench, run):
    (run.root / "notes.txt").write_text("mine")
    outcome = orbax_bench("lineage", run.root / "notes.txt")
    assert outcome.code == 2
    assert "says nothing of notes.txt: known: " in outcome.err


@pytest.fixture
def newer(judged):
    """A record that a newer release has put in the place of one of a judged run."""
    path, *_ = judged.root.glob("records/*/*/host_0.json")
    path.write_text(path.read_text().replace('"schema_version": 5', '"schema_version": 6'))
    return path


def test_a_record_of_another_schema_version_breaks_the_chain(orbax_bench, walk, judged, newer):
    code, found = walk(judged.root)
    assert (code, found["records"]["status"]) == (1, "changed")
    outcome = orbax_bench("lineage", judged.root)
    assert f"left out {newer}: written by a newer orbax-bench (schema 6" in outcome.out


def test_records_that_were_left_out_are_not_called_unchanged(orbax_bench, judged, newer):
    assert orbax_bench("report", judged.root).code == 1
    outcome = orbax_bench("lineage", judged.root / "samples.parquet", "--json")
    assert outcome.code == 1
    said = json.loads(outcome.out)
    found = {finding["what"]: finding for finding in said["findings"]}
    assert said["unchanged"] == "unknown"
    assert found["samples"]["status"] == "unchanged"
    assert found["records"]["status"] == "unknown"
    assert found["records"]["compared"] == "digests agree; 1 file is not read as a record"
    (line,) = found["records"]["left_out"]
    assert line.startswith(f"{newer}: written by a newer orbax-bench (schema 6")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Makes entry points of the project those of an installed package."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    [(name, value)] = project["entry-points"]["orbax_bench.lineage"].items()
    folder = tmp_path / "site" / "stand_in-0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Name: stand-in\nVersion: 0\n")
    (folder / "entry_points.txt").write_text(f"[orbax_bench.lineage]\n{name} = {value}\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


def test_a_metadata_store_that_cannot_be_asked_names_the_extra(orbax_bench, installed, monkeypatch):
    from orbax_bench_pipelines.targets import checks

    monkeypatch.setattr(checks, "_is_there", lambda module: not module.startswith("google"))
    outcome = orbax_bench("lineage", STORED)
    assert outcome.code == 2
    assert "pip install 'orbax-bench[vertex]'" in outcome.err


@pytest.mark.parametrize("place", ["/proc", "/"])
def test_a_manifest_that_names_no_checkpoint_is_not_waited_for(walk, run, place):
    file = run.root / "lineage.json"
    content = json.loads(file.read_text())
    content["made"]["records"]["inputs"] = {f"checkpoint:{place}": "sha256:1"}
    file.write_text(json.dumps(content))
    begun = time.process_time()
    code, found = walk(run.root)
    assert (code, found["checkpoint"]["status"]) == (1, "missing")
    assert time.process_time() - begun < 60
