import io
import shlex
import sys
import tempfile

import pytest

pytest.importorskip("kfp")

from kfp import dsl, local

from orbax_bench_core.errors import UserError
from orbax_bench_pipelines.targets.local import (
    PipelineFailed,
    run_locally,
    run_with,
    step_environment,
    steps_at_a_time,
)


def run(pipeline, root, say=print):
    runner = local.SubprocessRunner(use_venv=False)
    run_with(runner, str(root), pipeline, {}, io.StringIO(), say=say)


def test_a_step_runs_by_an_interpreter_below_a_folder_with_a_space(tmp_path, monkeypatch):
    folder = tmp_path / "with a space"
    folder.mkdir()
    real = folder / "python"
    real.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    real.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(real))
    said = []

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def greet(name: str):
        print(f"orbax-bench: {name}")

    @dsl.pipeline
    def greeting(name: str):
        greet(name=name)

    run_locally(greeting, {"name": "hello"}, log=io.StringIO(), say=said.append)
    assert said == ["hello"]


def test_kfp_leaves_nothing_among_the_temporary_files(tmp_path, monkeypatch):
    root, temporary = tmp_path / "root", tmp_path / "tmp"
    root.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    run(lambda: None, root)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(("asked", "most"), [(None, 2), (5, 5)])
def test_as_many_steps_run_at_once_as_were_asked_for(asked, most):
    from kfp.local.orchestrator.enhanced_dag_orchestrator import ParallelExecutor

    with steps_at_a_time(asked):
        assert ParallelExecutor().conservative_max == most
    assert ParallelExecutor().conservative_max == 2


@pytest.mark.parametrize(("own", "told"), [({}, None), ({"ORBAX_BENCH_REVISION": "x"}, "a@b")])
def test_a_step_here_is_told_an_image_only_where_it_runs_in_one(tmp_path, own, told):
    given = step_environment({"ORBAX_BENCH_IMAGE": "a@b", **own}, tmp_path)
    assert given.get("ORBAX_BENCH_IMAGE") == told


def test_a_pipeline_that_is_started_on_several_hosts_is_refused_on_each(tmp_path, monkeypatch):
    place = {"HEAD": "192.0.2.1:9", "HOST": "1", "NUM_HOSTS": "2"}
    for name, value in place.items():
        monkeypatch.setenv(f"ORBAX_BENCH_{name}", value)
    with pytest.raises(UserError, match="host 1 of 2, and a pipeline on this machine measures on"):
        run_with(None, str(tmp_path), lambda: None, {}, io.StringIO(), say=print)


@pytest.mark.parametrize(
    "line",
    [
        "    orbax_bench_core.errors.user_error.UserError: the suite is a teapot",
        "    orbax-bench: error: the suite is a teapot",
    ],
)
def test_the_message_of_a_step_that_failed_is_handed_on(tmp_path, line):
    def pipeline():
        print(line)
        raise RuntimeError("Task failed")

    with pytest.raises(PipelineFailed, match="Task failed: the suite is a teapot"):
        run(pipeline, tmp_path)
