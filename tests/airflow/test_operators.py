"""What an operator makes of the lines of a step; Airflow itself is a stand-in here."""

import importlib
import json
import shlex
import signal
import sys
import time
import types

import pytest

from tests.support.webhook import webhook  # noqa: F401 - a fixture

LOGGED = []


class Operator:
    """Stands for Airflow's."""

    def __init__(self, **_):
        self.log = types.SimpleNamespace(info=LOGGED.append)


class Failed(Exception):
    """Stands for what is tried again, and for what is not."""


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs a step that is a script of Python."""
    errors = types.ModuleType("airflow.sdk.exceptions")
    errors.AirflowException = errors.AirflowFailException = Failed
    sdk = types.ModuleType("airflow.sdk")
    sdk.BaseOperator, sdk.exceptions = Operator, errors
    modules = {"airflow": types.ModuleType("airflow"), "airflow.sdk": sdk}
    for name, module in {**modules, "airflow.sdk.exceptions": errors}.items():
        monkeypatch.setitem(sys.modules, name, module)
    package = types.ModuleType("orbax_bench_airflow")
    package.__path__ = importlib.util.find_spec("orbax_bench_airflow").submodule_search_locations
    monkeypatch.setitem(sys.modules, "orbax_bench_airflow", package)
    for name in ("outcome", "operators"):
        monkeypatch.delitem(sys.modules, f"orbax_bench_airflow.{name}", raising=False)
    operators = importlib.import_module("orbax_bench_airflow.operators")

    def start(script):
        program, file = tmp_path / "step.py", tmp_path / "step"
        program.write_text(f"import sys\n{script}\n")
        file.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {program}\n")
        file.chmod(0o755)
        step = operators.StepOperator(arguments=["aggregate"], command=str(file))
        return step.execute({"task": types.SimpleNamespace(outlets=())})

    yield start
    for name in ("outcome", "operators"):
        sys.modules.pop(f"orbax_bench_airflow.{name}", None)


def test_the_last_line_is_returned_however_long(run):
    result = ["x" * 100_000]
    assert run(f"print('hello'); print({json.dumps(result)!r})") == result


def test_a_failure_says_no_more_than_people_read(run):
    LOGGED.clear()
    with pytest.raises(Failed, match="aggregate ended with exit code 1") as caught:
        run("print('y' * 3_000_000); sys.exit(1)")
    assert len(str(caught.value)) < 3000
    assert max(map(len, LOGGED)) == 2000


class TimedOut(BaseException):
    """Stands for what Airflow raises in a task that takes longer than it may."""


def test_a_step_that_hangs_is_ended_when_its_task_has_timed_out(run):
    def time_out(*_):
        raise TimedOut

    began, before = time.monotonic(), signal.signal(signal.SIGALRM, time_out)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(TimedOut):
            run("import time; time.sleep(600)")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 60


@pytest.fixture
def callback(run, webhook):
    """Returns what a DAG calls when a run of it has failed, with a command that is not there."""
    outcome = importlib.import_module("orbax_bench_airflow.outcome")
    return outcome.TellFailure(
        finish="sweep.finish",
        words=("finish", "-o", "/runs/{{ run_id }}"),
        suite="/suites/nightly.yaml",
        directory="/runs/{{ run_id }}",
        command="/nowhere/orbax-bench",
        environment={"ORBAX_BENCH_NOTIFY": webhook.url},
    )


def failed(reason, task=None):
    ti = {} if task is None else {"ti": types.SimpleNamespace(task_id=task)}
    return {"run_id": "monday", "reason": reason, **ti}


@pytest.mark.parametrize(
    "context",
    [
        failed("task_failure", "sweep.finish"),
        failed("task_failure"),
        failed("all_tasks_deadlocked", "sweep.measure"),
        failed("timed_out", "sweep.measure"),
    ],
)
def test_a_run_of_which_the_last_task_told_nobody_is_told_by_the_dag(callback, webhook, context):
    callback(context)
    [(_, message)] = webhook.posted
    assert (message["state"], message["suite"]) == ("FAILED", "/suites/nightly.yaml")
    assert message["run_directory"] == "/runs/monday"
    assert f"the run monday of Airflow failed ({context['reason']})" in message["lines"][0]


def test_a_run_that_failed_by_another_task_was_told_by_the_last_one(callback, webhook):
    callback(failed("task_failure", "sweep.measure"))
    assert webhook.posted == []


def test_the_log_that_shows_a_callback_shows_no_secret(callback):
    assert "S3CR3T" not in repr(callback)
