"""Batches of steps in the lineage of a run: named, torn, lost."""

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.leases import batch_name
from orbax_bench_core.lineage import (
    ManifestWriter,
    check,
    name_batch,
    read_manifest,
    read_planned,
    write_planned,
)
from orbax_bench_core.lineage.batches import read_batch


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
    """Returns what is found of each batch by the name of its batch or file."""
    ManifestWriter(run).note_report()
    return {each.name: each for each in check(run) if each.what == "batch"}


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", '{"batch": 3}', '{"batch": [NaN]}'])
def test_a_plan_of_steps_that_is_none_is_one_message(run, text):
    (run.root / "batches" / "planned.json").write_text(text)
    with pytest.raises(UserError, match=r"planned\.json: not a plan of the steps of a pipeline"):
        read_planned(run.root)


def test_a_step_that_was_lost_is_missing_in_the_lineage(run):
    found = steps(run)
    (first, second, lost) = ids(run)
    assert found[lost].status == "missing"
    assert found[lost].details["its step left nothing"] == f"no record of {lost}"
    assert found[f"batches/{batch_name([first, second])}.1.json"].status == "unchanged"
    assert next(iter(found)) == lost  # what is not as it was stands first


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
    found = steps(run)
    assert found[lost.id].status == "not checked"
    assert found[lost.id].details["its step named nothing"] == "its points have records"


def test_a_record_that_changed_after_its_step_shows(run):
    steps(run)
    first = ids(run)[0]
    [path] = (run.root / "records" / first).glob("*/host_0.json")
    path.write_text(path.read_text().replace('"duration_s": ', '"duration_s":  '))
    found = steps(run)
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


def test_the_file_of_a_step_leads_to_the_records(run):
    ManifestWriter(run).note_report()
    name = batch_name(ids(run)[:2])
    batch, records, *_ = check(run, f"batches/{name}.1.json")
    assert (batch.what, batch.status, batch.depth) == ("batch", "unchanged", 0)
    assert (records.what, records.depth) == ("records", 1)
