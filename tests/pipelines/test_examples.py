"""The CI examples: read strictly, and run with the commands that there are."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

pytest.importorskip("kfp")

from kubernetes import client

EXAMPLES = Path(__file__).parents[2] / "examples" / "ci"


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
    import subprocess

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
