"""Batches of steps in the lineage of a run: named, torn, lost."""

import json

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.leases import batch_name
from orbax_bench_core.lineage import (
    ManifestWriter,
    name_batch,
    read_manifest,
    trace,
    write_planned,
)
from orbax_bench_core.lineage.batch_files import read_batch, read_planned


@pytest.fixture
def run(make_run, make_record, make_point):
    """A run of three points, of which the last has no record, planned as two steps."""
    records = [make_record(make_point(options={"n": number})) for number in (0, 1)]
    lost = make_point(options={"n": 2})
    found = make_run(records, points=[*(record.point for record in records), lost])
    write_planned(found.root, [ids_of(records), [lost.id]])
    name_batch(found, batch_name(ids_of(records)), ids_of(records), "passed")
    return found


def ids_of(records):
    return [record.point_id for record in records]


def ids(run):
    return [entry.id for entry in run.read_info().expansion.points]


def steps(run):
    """Returns the link of each batch by the name of its batch or file."""
    ManifestWriter(run).note_report()
    [link] = [each for each in trace(str(run.root)).all_links() if each.what == "steps"]
    return link, {each.name: each for each in link.made_from}


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", '{"batch": 3}', '{"batch": [NaN]}'])
def test_a_plan_of_steps_that_is_none_is_one_message(run, text):
    (run.root / "batches" / "planned.json").write_text(text)
    with pytest.raises(UserError, match=r"planned\.json: not a plan of the steps of a pipeline"):
        read_planned(run.root)


def test_a_step_that_was_lost_is_missing_in_the_lineage(run):
    link, found = steps(run)
    assert link.details == {"left nothing": "1"}
    (first, second, lost) = ids(run)
    assert found[lost].status == "missing"
    assert found[lost].details["its step left nothing"] == f"no record of {lost}"
    assert found[f"batches/{batch_name([first, second])}.1.json"].status == "unchanged"
    assert trace(str(run.root)).broken


def test_the_manifest_lists_every_step(run):
    ManifestWriter(run).note_report()
    noted = read_manifest(run).batches
    (first, second, lost) = ids(run)
    assert {name: batch.points for name, batch in noted.items()} == {
        batch_name([first, second]): 2,
        lost: 1,
    }
    assert (noted[lost].file, noted[lost].digest) == ("", "")


def test_points_that_another_command_measured_are_not_missing(run, make_record):
    lost = run.read_info().expansion.points[-1]
    run.write_record(make_record(lost))
    _, found = steps(run)
    assert found[lost.id].status == "not checked"
    assert found[lost.id].details["its step named nothing"] == "its points have records"


def test_a_record_that_changed_after_its_step_shows(run):
    steps(run)
    first = ids(run)[0]
    [path] = (run.root / "records" / first).glob("*/host_0.json")
    path.write_text(path.read_text().replace('"duration_s": ', '"duration_s":  '))
    _, found = steps(run)
    [changed] = [link for link in found.values() if link.status == "changed"]
    assert changed.details["differs"] == f"its records of {first}"


def test_a_step_that_is_run_again_keeps_its_file_or_adds_the_next(run, make_record):
    (first, second, _) = ids(run)
    name = batch_name([first, second])
    assert name_batch(run, name, [first, second], "passed") == f"batches/{name}.1.json"
    run.write_record(make_record(run.read_info().expansion.points[0], 1))
    assert name_batch(run, name, [first, second], "passed") == f"batches/{name}.2.json"
    assert read_batch(run.root / f"batches/{name}.1.json").points.keys() == {first, second}
    ManifestWriter(run).note_report()
    assert read_manifest(run).batches[name].file == f"batches/{name}.2.json"


def test_the_file_of_a_step_has_a_chain_of_its_own(run):
    ManifestWriter(run).note_report()
    name = batch_name(ids(run)[:2])
    link = trace(str(run.root / "batches" / f"{name}.1.json"))
    assert (link.what, link.status) == ("batch", "unchanged")
    assert [each.what for each in link.made_from] == ["records"]


def test_a_run_without_steps_says_nothing_of_batches(make_run, make_record):
    run = make_run([make_record()])
    ManifestWriter(run).note_report()
    assert "batches" not in json.loads((run.root / "lineage.json").read_text())
