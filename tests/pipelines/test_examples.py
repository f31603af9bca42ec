"""The examples of pipelines: read strictly, and run as they are written."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("kfp")

from kubernetes import client

from tests.pipelines import strict

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "ci"


def github_script():
    workflow = yaml.safe_load((EXAMPLES / "github-actions.yaml").read_text())
    [script] = [
        step["run"]
        for step in workflow["jobs"]["regression"]["steps"]
        if "orbax-bench pipeline" in step.get("run", "")
    ]
    return script


def cron_job():
    return yaml.safe_load((EXAMPLES / "kubernetes-cronjob.yaml").read_text())


def container():
    [found] = cron_job()["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return found


def arguments(script):
    """The arguments behind `orbax-bench pipeline` in a shell script."""
    [command] = re.findall(r"orbax-bench pipeline (.*?)(?:\|\||\n|$)", script.replace("\\\n", " "))
    return shlex.split(command)


def test_the_cron_job_is_one_of_kubernetes():
    class Response:
        data = json.dumps(cron_job())

    api = client.ApiClient()
    read = api.deserialize(Response, "V1CronJob")
    assert api.sanitize_for_serialization(read) == cron_job()


@pytest.mark.parametrize("script", [github_script(), container()["command"][-1]])
def test_the_command_is_one_of_ours(script, pipeline_command, tmp_path):
    given = arguments(script)
    given[1] = EXAMPLES / "suite.yaml"
    given[given.index("--output-directory") + 1] = tmp_path / "out"
    done = pipeline_command(*given, "--dry-run")
    assert done.code == 0, done.err
    assert json.loads(done.out)["pipeline"] == "regression"


def test_the_cron_job_does_not_measure_again_after_a_verdict():
    spec = cron_job()["spec"]["jobTemplate"]["spec"]
    [rule] = spec["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"] == {
        "containerName": container()["name"],
        "operator": "In",
        "values": [2, 3],
    }
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


@pytest.mark.slow
@pytest.mark.parametrize(("code", "step"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 0)])
def test_the_workflow_step_ends_as_the_verdict_says(code, step, tmp_path):
    stand_in = tmp_path / "orbax-bench"
    stand_in.write_text(f"#!/bin/sh\nexit {code}\n")
    stand_in.chmod(0o755)
    # GitHub runs a step with `bash -e`.
    done = subprocess.run(
        ["bash", "-e", "-c", github_script()],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == step


OURS_IN_THEIRS = ROOT / "examples" / "use_in_your_pipeline.py"


@pytest.mark.nightly
@pytest.mark.slow
def test_our_components_run_between_those_of_others(tmp_path):
    unset = ("XLA_FLAGS", "JAX_ENABLE_X64")
    done = subprocess.run(
        [sys.executable, OURS_IN_THEIRS, tmp_path / "out"],
        env={name: value for name, value in os.environ.items() if name not in unset},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (tmp_path / "out" / "steps.log").read_text()
    assert done.stdout.startswith("Fastest: save_restore[use_compression=")
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.slow
def test_a_pipeline_with_our_components_compiles_with_kfps_own_command(tmp_path):
    package = tmp_path / "mine.yaml"
    kfp = [sys.executable, "-c", "from kfp.cli.__main__ import main; main()", "dsl", "compile"]
    subprocess.run([*kfp, "--py", OURS_IN_THEIRS, "--output", package], check=True)
    strict.pipeline_spec(yaml.safe_load(package.read_text()))
