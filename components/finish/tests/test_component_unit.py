"""The finish component: its compiled form, and its body on what other steps left, or did not."""

# ruff: noqa: D103

from pathlib import Path

import pytest

pytest.importorskip("kfp")

from kfp import components, dsl

from orbax_bench_components.finish import finish
from orbax_bench_components.plan_sweep import plan_sweep
from orbax_bench_components.testing import call

COMPILED = Path(__file__).parents[1] / "component.yaml"
SUITE = """
suite_name: small
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


def ended(folder, run, state="FAILED", **inputs):
    """Calls the component as after steps that ended with `state`; returns what it said as well."""
    status = dsl.PipelineTaskFinalStatus(
        state=state,
        pipeline_job_resource_name="job",
        pipeline_task_name="run",
        error_code=None,
        error_message=None,
    )
    made = call(finish, folder / "made", output_directory=str(run), status=status, **inputs)
    return made["Output"], Path(made["ending"].path).read_text(), made


def test_the_compiled_component_is_an_exit_task_where_it_is_loaded():
    loaded = components.load_component_from_file(str(COMPILED))

    @dsl.component(base_image="python:3.12")
    def work() -> None:
        pass

    @dsl.pipeline
    def mine(directory: str) -> None:
        done = loaded(pipeline_run=dsl.PIPELINE_JOB_ID_PLACEHOLDER, output_directory=directory)
        with dsl.ExitHandler(done):
            work()

    tasks = mine.pipeline_spec.root.dag.tasks
    assert tasks["finish"].inputs.parameters["status"].task_final_status.producer_task


def test_a_run_that_never_began_leaves_a_report_that_says_so(tmp_path):
    state, said, made = ended(tmp_path, tmp_path / "run", suite=SUITE)
    assert state == "FAILED"
    assert "no run was begun" in said
    assert "no run was begun" in Path(made["report"].path).read_text()
    assert (tmp_path / "run" / "report.html").exists()


def test_a_suite_that_was_refused_is_named_with_its_mistake(tmp_path):
    wrong = SUITE.replace("save_restore", "nowhere.Class")
    state, said, _ = ended(tmp_path, tmp_path / "run", suite=wrong)
    assert state == "FAILED"
    assert "cannot import 'nowhere'" in said


@pytest.mark.slow
def test_a_lost_step_leaves_a_report_of_what_is_there(tmp_path):
    run = str(tmp_path / "run")
    [point] = call(plan_sweep, tmp_path / "planned", suite=SUITE, output_directory=run)["Output"]
    state, said, made = ended(tmp_path, run)
    assert state == "FAILED"
    assert f"the step of {point} left nothing" in said
    assert Path(made["report"].path).read_text() == Path(run, "report.html").read_text()


def test_slices_of_a_scheduled_run_are_told_each_by_itself(tmp_path):
    chosen = tmp_path / "2026-11-24T000000Z-12345678"
    chosen.mkdir()
    _, said, _ = ended(
        tmp_path,
        tmp_path,
        pipeline_run="1234567890",
        folder_per_run=True,
        slices=["v5e-2x4", "v6e-2x4"],
    )
    assert f"{chosen}/v5e-2x4" in said and f"{chosen}/v6e-2x4" in said
    assert (chosen / "report.html").exists()
