"""Artifacts of components, and their metadata."""

import json
from pathlib import Path

import pytest

pytest.importorskip("kfp")

import pyarrow.parquet
from kfp import dsl

from orbax_bench_components.aggregate import aggregate
from orbax_bench_components.calibrate import calibrate
from orbax_bench_components.compare_baseline import compare_baseline
from orbax_bench_components.generate_checkpoint import generate_checkpoint
from orbax_bench_components.publish_baseline import publish_baseline
from orbax_bench_core.config import UserError
from orbax_bench_core.lineage import baseline_digest, file_digest
from orbax_bench_core.records import PACKAGES, RunDirectory
from tests.support.paired_runs import make_paired_run  # noqa: F401 - a fixture

REQUIRED = {
    "orbax_bench_type",
    "schema_version",
    "run_id",
    "run_directory",
    "config_hash",
    "point_ids",
    "point_count",
    "point_ids_digest",
    "digest",
    "inputs",
    "image",
    "image_digest",
    *(f"version_{name}" for name in PACKAGES),
}
LOADING = """
suite_name: loading
checkpoint_config: {{path: {path}}}
benchmarks: [{{generator: save_restore, options: {{}}}}]
"""


def artifacts(outputs):
    return {name: one for name, one in outputs.items() if isinstance(one, dsl.Artifact)}


@pytest.fixture
def aggregated(call, records_artifact, make_run, make_record):
    record = make_record(times={"save": 0.5})
    run = make_run([], points=[record.point])
    return run, call(
        aggregate, records=[records_artifact([record])], output_directory=str(run.root)
    )


@pytest.fixture
def compared(call, make_paired_run):
    run = make_paired_run(0)
    return run, call(compare_baseline, output_directory=str(run.root))


@pytest.fixture
def published(call, aggregated, tmp_path):
    run, _ = aggregated
    registry = str(tmp_path / "registry")
    return run, call(publish_baseline, output_directory=str(run.root), registry=registry)


@pytest.fixture
def calibrated(call, make_paired_run):
    return None, call(calibrate, runs=[str(make_paired_run(0).root), ""])


@pytest.fixture
def generated(call, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "_METADATA").write_text("{}")
    return None, call(generate_checkpoint, suite=LOADING.format(path=checkpoint))


@pytest.mark.slow
@pytest.mark.parametrize("step", ["aggregated", "compared", "published", "calibrated", "generated"])
def test_every_artifact_says_all_of_itself_in_text(request, step):
    _, outputs = request.getfixturevalue(step)
    for name, one in artifacts(outputs).items():
        assert set(one.metadata) >= REQUIRED, name
        assert {type(one.metadata[key]) for key in REQUIRED} == {str}, name
        assert one.metadata["inputs"] != "unknown", name


@pytest.mark.parametrize("name", ["samples", "summary", "report"])
def test_an_artifact_has_the_digest_of_its_content(aggregated, name):
    _, outputs = aggregated
    assert outputs[name].metadata["digest"] == file_digest(outputs[name].path)


def test_samples_name_the_records_that_they_were_made_from(aggregated):
    run, outputs = aggregated
    kept = json.loads((run.root / "lineage.json").read_text())
    inputs = json.loads(outputs["samples"].metadata["inputs"])
    assert inputs == {"records": kept["made"]["records"]["digest"]}


@pytest.mark.slow
def test_records_that_the_run_directory_lacks_are_put_there(aggregated):
    run, outputs = aggregated
    assert len(list(run.records())) == 1
    assert pyarrow.parquet.read_table(outputs["samples"].path).num_rows == 1


@pytest.mark.slow
def test_points_that_are_missing_are_simply_not_there(call, make_run, make_point):
    run = make_run([], points=[make_point()])
    outputs = call(aggregate, records=[], output_directory=str(run.root))
    assert pyarrow.parquet.read_table(outputs["samples"].path).num_rows == 0
    assert run.read_info().status == "incomplete"


def test_the_tensorboard_artifact_points_at_the_run_directory(aggregated):
    run, outputs = aggregated
    assert outputs["tensorboard"].uri == str(run.root / "tensorboard")
    assert list(Path(run.root / "tensorboard").rglob("events.out.tfevents.*"))


def test_metrics_hold_the_median_of_each_operation(aggregated):
    _, outputs = aggregated
    [value] = [v for v in outputs["metrics"].metadata.values() if isinstance(v, float)]
    assert value == 0.5


def test_verdicts_name_what_they_were_made_from(compared):
    _, outputs = compared
    assert outputs["verdicts"].metadata["verdict"] == outputs["Output"]
    assert "records" in json.loads(outputs["verdicts"].metadata["inputs"])
    of_page = json.loads(outputs["report"].metadata["inputs"])
    assert of_page == {"verdicts.json": outputs["verdicts"].metadata["digest"]}


def test_the_report_of_a_comparison_needs_no_other_file(compared):
    _, outputs = compared
    page = Path(outputs["report"].path).read_text()
    assert "<link" not in page and 'src="http' not in page


def test_a_baseline_has_the_digest_of_what_was_captured(published):
    _, outputs = published
    assert outputs["baseline"].metadata["digest"] == baseline_digest(outputs["baseline"].uri)


def test_a_checkpoint_has_a_digest_that_leaves_its_arrays_unread(generated):
    _, outputs = generated
    metadata = outputs["checkpoint"].metadata
    assert metadata["digest"].startswith("sha256:")
    assert metadata["path"] == outputs["checkpoint"].uri
    assert len(metadata["config_hash"]) == 64


def test_a_file_with_records_of_a_newer_release_is_refused(call, artifact, make_run, make_record):
    record = make_record()
    run = make_run([], points=[record.point])
    newer = artifact(dsl.Dataset, "newer")
    line = record.model_dump_json().replace('"schema_version":2', '"schema_version":9')
    Path(newer.path).write_text(line + "\n")
    with pytest.raises(UserError, match=r"newer: written by a newer .*\(schema 9; this one"):
        call(aggregate, records=[newer], output_directory=str(run.root))


@pytest.mark.parametrize("content", ["suite_name: not ours\n", "[1, 2]\n", '{"a": 1}\n'])
def test_a_file_that_is_not_ours_is_refused(call, artifact, make_run, make_point, content):
    run = make_run([], points=[make_point()])
    other = artifact(dsl.Dataset, "other.yaml")
    Path(other.path).write_text(content)
    with pytest.raises(UserError, match=r"other.yaml:1: not a record of orbax-bench: give"):
        call(aggregate, records=[other], output_directory=str(run.root))


def test_nothing_is_collected_from_a_file_that_is_refused(call, artifact, make_run, make_record):
    record = make_record()
    run = make_run([], points=[record.point])
    half = artifact(dsl.Dataset, "half")
    Path(half.path).write_text(record.model_dump_json() + "\nno json\n")
    with pytest.raises(UserError, match="half:2"):
        call(aggregate, records=[half], output_directory=str(run.root))
    assert list(RunDirectory(str(run.root)).records()) == []
