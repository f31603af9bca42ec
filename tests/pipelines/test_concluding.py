"""The exit code of a pipeline's command: what was found, and what was lost."""

import io
import types

import pytest
from rich.console import Console

from orbax_bench_core.analysis.verdicts import write_verdicts
from orbax_bench_core.engine import RunEnding
from orbax_bench_core.publishing import Notifiers
from orbax_bench_pipelines.cli.running import Ended, Told, conclude
from orbax_bench_pipelines.definitions import pipelines
from orbax_bench_pipelines.definitions.pipeline import Finished
from tests.support.verdicts import build_operation, build_point, build_report


@pytest.fixture
def ended(make_record, make_run):
    """Returns the exit code of a pipeline by what its records say and what became of its steps."""

    def run(found, status, failure, told=None, file=None):
        directory = make_run([make_record()])
        directory.set_status(status)
        pipeline = types.SimpleNamespace(name="regression", conclude=lambda *_: found)
        job = types.SimpleNamespace(
            pipeline=pipeline,
            arguments={"output_directory": str(directory.root)},
            settings=types.SimpleNamespace(tpu=()),
        )
        places = Told(Notifiers(), "s")
        console = Console(file=file or io.StringIO())
        return conclude(job, Ended(failure, told), console, places)

    return run


def test_names_in_brackets_are_shown_as_they_are(ended):
    file = io.StringIO()
    ended(0, "incomplete", "save[use_ocdbt=true] in 'a [/b]' failed", file=file)
    assert "The pipeline failed: save[use_ocdbt=true] in 'a [/b]' failed" in file.getvalue()


@pytest.mark.parametrize(
    ("found", "status", "failure", "code"),
    [
        (0, "complete", None, 0),
        (4, "complete", "INCONCLUSIVE", 4),
        (3, "complete", "REGRESSION", 3),
        (0, "complete", "a step after the verdict failed", 1),
        (0, "incomplete", "a step was lost", 1),
        (4, "incomplete", "a step was lost", 1),
        (3, "incomplete", "a step was lost", 3),
        (4, "running", "aggregate was lost", 1),
    ],
)
def test_a_loss_goes_before_what_is_inconclusive_and_after_a_regression(
    ended, found, status, failure, code
):
    assert ended(found, status, failure) == code


def test_a_reason_is_told_once(ended):
    printed = io.StringIO()
    told = RunEnding.of("FAILED", ("the step of points/1 left nothing",), "/r")
    assert ended(0, "incomplete", "failed: see its steps in the Kubeflow UI", told, printed) == 1
    [first, _] = printed.getvalue().splitlines()
    assert first == "FAILED: the step of points/1 left nothing"


@pytest.mark.parametrize(("beyond_runs", "code"), [(False, 0), (True, 3)])
def test_a_sweep_beside_a_baseline_fails_by_more_than_runs_differ_by(
    make_record, make_run, beyond_runs, code
):
    run = make_run([make_record(times={"save": 1.0})])
    slower = build_operation("save", "REGRESSION", 5.8, verdict={"beyond_runs": beyond_runs})
    write_verdicts(run, build_report(build_point("p", slower, mode="unpaired")))
    finished = Finished(str(run.root), {"baseline": "elsewhere"}, None)
    assert pipelines.conclude_sweep(finished, Console(file=io.StringIO())) == code
