"""Artifacts of components, and their metadata."""

import json
from pathlib import Path

import pytest

pytest.importorskip("kfp")

import pyarrow.parquet
from kfp import dsl

from orbax_bench_components.aggregate import aggregate
from orbax_bench_components.best import best
from orbax_bench_components.calibrate import calibrate
from orbax_bench_components.compare_baseline import compare_baseline
from orbax_bench_components.enforce_verdict import enforce_verdict
from orbax_bench_components.finish import finish
from orbax_bench_components.generate_checkpoint import generate_checkpoint
from orbax_bench_components.inspect_checkpoint import inspect_checkpoint
from orbax_bench_components.plan_save import plan_save
from orbax_bench_components.plan_sweep import plan_sweep
from orbax_bench_components.publish_baseline import publish_baseline
from orbax_bench_core.engine import NotPassed
from orbax_bench_core.errors import UserError
from orbax_bench_core.lineage import file_digest, trace
from orbax_bench_core.records import RunDirectory
from orbax_bench_pipelines.definitions.own import begin_run
from tests.support.argo_rules import refused_uri
from tests.support.paired_runs import make_paired_run  # noqa: F401 - a fixture

REQUIRED = {
    "orbax_bench_type",
    "schema_version",
    "digest",
    "path",
    "run_directory",
    "run_id",
    "suite",
    "config_hash",
    "image",
    *(f"version_{name}" for name in ("orbax-bench", "jax", "orbax-checkpoint")),
}
STEPS = ("aggregated", "compared", "published", "calibrated", "generated", "chosen", "foreseen")
LOADING = """
suite_name: loading
checkpoint_config: {{path: {path}}}
benchmarks: [{{generator: save_restore, options: {{}}}}]
"""


def artifacts(outputs):
    return {name: one for name, one in outputs.items() if isinstance(one, dsl.Artifact)}


@pytest.fixture
def aggregated(call, make_run, make_record):
    run = make_run([make_record(times={"save": 0.5})])
    return run, call(aggregate, output_directory=str(run.root))


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
def planned(call, tmp_path):
    run = str(tmp_path / "run")
    suite = LOADING.format(path=tmp_path)
    return None, call(plan_sweep, suite=suite, output_directory=run)


@pytest.fixture
def brought(call, published, tmp_path):
    run, _ = published
    return run, begun(call, tmp_path, baseline=str(run.root))


def begun(call, tmp_path, **given):
    """Begins a run of a suite that loads nothing."""
    suite = "suite_name: s\nbenchmarks:\n- {generator: save_restore, options: {}}\n"
    suite += "checkpoint_config: {spec: {a: {dtype: float32, shape: [8]}}}\n"
    return call(begin_run, suite=suite, output_directory=str(tmp_path / "begun"), **given)


@pytest.fixture
def ended(call, tmp_path):
    status = dsl.PipelineTaskFinalStatus("SUCCEEDED", "run", "task", None, None)
    return None, call(finish, output_directory=str(tmp_path / "run"), status=status)


@pytest.fixture
def calibrated(call, make_paired_run):
    return None, call(calibrate, runs=[str(make_paired_run(0).root), ""])


@pytest.fixture
def chosen(call, make_run, make_point, make_record):
    points = [make_point(options={"n": number}, label=str(number)) for number in range(2)]
    records = [
        make_record(point, number, times={"save": (1.0 + place) * (1 + number / 100)})
        for number in range(4)
        for place, point in enumerate(points)
    ]
    run = make_run(records, points=points, num_repeats=4)
    return run, call(best, output_directory=str(run.root))


@pytest.fixture
def foreseen(call):
    return None, call(plan_save, source="llama-8b@0.01")


@pytest.fixture
def generated(call, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "_METADATA").write_text("{}")
    return None, call(generate_checkpoint, suite=LOADING.format(path=checkpoint))


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_every_artifact_says_all_of_itself_in_text(request, step):
    _, outputs = request.getfixturevalue(step)
    for name, one in artifacts(outputs).items():
        if isinstance(one, dsl.Metrics):
            # The word is text, as Vertex AI's own `ExperimentRun.log_metrics` takes it.
            numbers = {key: value for key, value in one.metadata.items() if key != "verdict"}
            assert {type(value) for value in numbers.values()} <= {int, float}, name
            continue
        assert set(one.metadata) >= REQUIRED, name
        assert {type(one.metadata[key]) for key in REQUIRED} == {str}, name
        assert one.metadata["digest"].startswith("sha256:"), name
        assert one.metadata["path"] != "unknown", name


@pytest.mark.slow
@pytest.mark.parametrize("step", [*STEPS, "planned", "brought", "ended"])
def test_no_uri_of_an_artifact_fails_a_step_of_kubeflow(request, monkeypatch, tmp_path, step):
    monkeypatch.setenv("KFP_POD_NAME", "pod-1")
    _, outputs = request.getfixturevalue(step)
    given, root = tmp_path / "artifacts", "minio://mlpipeline/v2/artifacts"
    assert artifacts(outputs)
    for name, one in artifacts(outputs).items():
        assert refused_uri(one.uri.replace(str(given), root), root) is None, name


def test_a_damaged_checkpoint_is_told_to_the_step_that_enforces(call, tmp_path):
    (tmp_path / "_CHECKPOINT_METADATA").write_text("{}")
    found = call(inspect_checkpoint, checkpoint=str(tmp_path))
    assert found["Output"][0] in Path(found["answer"].path).read_text()
    with pytest.raises(NotPassed, match=found["Output"][0][:20]):
        call(enforce_verdict, lacking=found["Output"])


@pytest.mark.slow
def test_points_that_are_missing_are_named_and_nothing_else_is_lost(
    call, make_run, make_record, make_point
):
    record, lost = make_record(times={"save": 0.5}), make_point(options={"n": 1})
    run = make_run([record], points=[record.point, lost])
    outputs = call(aggregate, output_directory=str(run.root))
    assert pyarrow.parquet.read_table(outputs["samples"].path).num_rows == 1
    assert outputs["Output"] == [f"{lost.name} {lost.id}: incomplete"]
    assert run.read_info().status == "incomplete"


@pytest.mark.slow
def test_what_is_lacking_is_told_in_a_few_lines(call, make_run, make_point):
    points = [make_point(options={"n": number}) for number in range(30)]
    run = make_run([], points=points)
    lacking = call(aggregate, output_directory=str(run.root))["Output"]
    assert len(lacking) == 21
    assert lacking[-1] == "and 10 more"


def test_the_digests_of_metrics_and_tensorboard_are_known(aggregated):
    run, outputs = aggregated
    made = json.loads((run.root / "lineage.json").read_text())["made"]
    assert made["tensorboard"]["digest"] == outputs["tensorboard"].metadata["digest"]
    assert made["metrics.json"]["digest"] == file_digest(outputs["metrics"].path)
    assert trace(str(run.root / "tensorboard"))[0].status == "unchanged"
    events = next(Path(run.root / "tensorboard").rglob("events.out.tfevents.*"))
    events.write_bytes(events.read_bytes() + b"x")
    assert trace(str(run.root / "tensorboard"))[0].status == "changed"


def test_verdicts_name_what_they_were_made_from(compared):
    run, outputs = compared
    assert outputs["verdicts"].metadata["verdict"] == outputs["Output"]
    made = json.loads((run.root / "lineage.json").read_text())["made"]
    assert "records" in made["verdicts.json"]["inputs"]
    of_page = made["verdicts.html"]["inputs"]
    assert of_page == {"verdicts.json": outputs["verdicts"].metadata["digest"]}


def test_the_report_of_a_comparison_needs_no_other_file(compared):
    _, outputs = compared
    page = Path(outputs["report"].path).read_text()
    assert "<link" not in page and 'src="http' not in page


def test_a_checkpoint_has_a_digest_that_leaves_its_arrays_unread(generated):
    _, outputs = generated
    metadata = outputs["checkpoint"].metadata
    assert metadata["digest"].startswith("sha256:")
    assert metadata["path"] == outputs["checkpoint"].uri
    assert len(metadata["config_hash"]) == 64


def test_a_pipeline_that_lacks_results_ends_as_failed(call):
    assert call(enforce_verdict)["Output"] is None
    with pytest.raises(NotPassed, match="the step of a was lost; and 3 more"):
        call(enforce_verdict, lacking=["the step of a was lost", "and 3 more"])
    with pytest.raises(NotPassed, match="REGRESSION"):
        call(enforce_verdict, verdict="REGRESSION", lacking=["the step of a was lost"])


def test_a_suite_is_an_artifact_that_points_at_its_run(call, tmp_path):
    suite = "suite_name: s\nbenchmarks:\n- {generator: save_restore, options: {}}\n"
    suite += "checkpoint_config: {spec: {a: {dtype: float32, shape: [8]}}}\n"
    outputs = call(plan_sweep, suite=suite, output_directory=str(tmp_path / "out"))
    planned = outputs["planned"]
    assert planned.uri == str(tmp_path / "out" / "run.json")
    assert planned.metadata["suite"] == "s"
    assert trace(planned.uri)[0].digest == planned.metadata["digest"]
    assert outputs["Output"] == [
        RunDirectory(str(tmp_path / "out")).read_info().expansion.points[0].id
    ]


def test_a_path_becomes_the_artifact_that_publishing_it_wrote(call, published, tmp_path):
    _, stored = published
    place = stored["baseline"].metadata["path"]
    brought = begun(call, tmp_path, baseline=place)["stored"]
    assert brought.uri == stored["baseline"].uri
    for key in ("orbax_bench_type", "digest", "path"):
        assert brought.metadata[key] == stored["baseline"].metadata[key], key


def test_a_baseline_that_is_not_there_stops_before_anything_is_compared(call, tmp_path):
    with pytest.raises(UserError, match="none"):
        begun(call, tmp_path, baseline=str(tmp_path / "none"))
    assert not (tmp_path / "begun").exists()


@pytest.mark.slow
def test_a_baseline_that_is_an_artifact_is_compared_with(call, published):
    run, stored = published
    outputs = call(compare_baseline, output_directory=str(run.root), stored=stored["baseline"])
    made = json.loads((run.root / "lineage.json").read_text())["made"]["verdicts.json"]
    [digest] = [made["inputs"][name] for name in made["inputs"] if name.startswith("baseline:")]
    assert digest == stored["baseline"].metadata["digest"]
    assert outputs["verdicts"].metadata["baseline"] == stored["baseline"].metadata["path"]
