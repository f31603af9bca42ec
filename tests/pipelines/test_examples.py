"""The examples of pipelines: read strictly, and run as they are written."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml

pytest.importorskip("kfp")

from kubernetes import client

from orbax_bench_core.analysis.verdicts import verdicts_document
from orbax_bench_core.cli.main import app
from orbax_bench_core.config import load_suite
from orbax_bench_core.environments import make_environments
from orbax_bench_core.pages import to_markdown
from tests.pipelines import strict
from tests.support.processes import plain_environment
from tests.support.verdicts import eventful  # noqa: F401 - fixture

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "ci"


def github_steps():
    """The script of each step of the workflow, by its name."""
    workflow = yaml.safe_load((EXAMPLES / "github-actions.yaml").read_text())
    return {
        step["name"]: step["run"]
        for step in workflow["jobs"]["regression"]["steps"]
        if "run" in step
    }


def cron_job():
    return yaml.safe_load((EXAMPLES / "kubernetes-cronjob.yaml").read_text())


def container():
    [found] = cron_job()["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return found


def test_the_deadline_of_the_cron_job_leaves_time_for_every_pod():
    """Of a pod that the deadline ends, nobody but `watch` would tell."""
    job = cron_job()["spec"]["jobTemplate"]["spec"]
    [minutes] = re.findall(r"--limit (\d+)m", container()["command"][-1])
    assert (job["backoffLimit"] + 1) * int(minutes) * 60 < job["activeDeadlineSeconds"]
    assert job["template"]["spec"]["terminationGracePeriodSeconds"] > 60  # which `night` gives


def words_given(script, folder, code=0):
    """What a script calls `orbax-bench` with, and how it ends where that ends with `code`."""
    stand_in = folder / "orbax-bench"
    stand_in.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{folder}/words"\nexit {code}\n')
    stand_in.chmod(0o755)
    # GitHub runs a step with `bash -e`.
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        env={"PATH": f"{folder}:/usr/bin:/bin", "RUNS": "gs://bucket/runs", "JOB": "n-1"},
        check=False,
    )
    return (folder / "words").read_text().splitlines(), done.returncode


def test_the_cron_job_is_one_of_kubernetes():
    strict.as_model(client.ApiClient(), cron_job(), "V1CronJob")


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4])
@pytest.mark.parametrize(
    ("script", "meant"),
    [(github_steps()["Compare"], "ab"), (container()["command"][-1], "night")],
)
def test_the_command_is_one_of_ours_and_its_exit_code_is_kept(script, meant, code, tmp_path):
    (command, *words), ended = words_given(script, tmp_path, code)
    assert (command, ended) == (meant, code)
    typer.main.get_command(app).get_command(None, command).make_context(command, words)


def test_the_cron_job_does_not_measure_again_after_a_verdict():
    spec = cron_job()["spec"]["jobTemplate"]["spec"]
    [rule] = spec["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"] == {
        "containerName": container()["name"],
        "operator": "In",
        "values": [1, 2, 3, 4],  # `night` has tried 1 again
    }
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def git(folder, *words):
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.com")
    subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)


@pytest.fixture
def checked_out(tmp_path):
    """A checkout of a pull request as GitHub makes it, with our suite where it says to copy it."""
    origin, checkout = tmp_path / "origin", tmp_path / "work" / "project"
    (origin / "benchmarks").mkdir(parents=True)
    shutil.copy(EXAMPLES / "pull_request.yaml", origin / "benchmarks")
    (origin / "pyproject.toml").write_text(PROJECT)
    (origin / "shipped_code.py").write_text("SIDE = 'base'\n")
    for words in (["init", "-b", "main"], ["add", "."], ["commit", "-m", "base"]):
        git(origin, *words)
    git(origin, "checkout", "-b", "change")
    (origin / "shipped_code.py").write_text("SIDE = 'pull request'\n")
    git(origin, "commit", "-am", "change")
    git(origin, "checkout", "main")
    git(origin, "merge", "--no-ff", "change")
    git(tmp_path, "clone", "--depth", "2", f"file://{origin}", checkout)
    script = github_steps()["Check out the base branch next to it"]
    subprocess.run(["bash", "-e", "-c", script], cwd=checkout, check=True, capture_output=True)
    return checkout


PROJECT = """\
[project]
name = "shipped-code"
version = "1"
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[tool.setuptools]
py-modules = ["shipped_code"]
"""


def test_the_workflow_compares_the_pull_request_with_its_base(checked_out):
    suite = checked_out / "benchmarks" / "pull_request.yaml"
    loaded = load_suite(str(suite)).suite
    sides = {}
    for arm in ("baseline", "candidate"):
        [folder] = loaded.environment(loaded.arm(arm).environment).requirements
        sides[arm] = (suite.parent / folder / "shipped_code.py").resolve().read_text()
    assert sides == {"baseline": "SIDE = 'base'\n", "candidate": "SIDE = 'pull request'\n"}
    # What lies beside the suite would be imported by both arms.
    assert [path.name for path in suite.parent.iterdir()] == ["pull_request.yaml"]


@pytest.mark.nightly
def test_each_arm_has_the_code_of_its_side(checked_out, tmp_path):
    suite = checked_out / "benchmarks" / "pull_request.yaml"
    configs = load_suite(str(suite)).suite.environments
    made = make_environments(configs, folder=suite.parent, say=print, cache=tmp_path / "cache")
    said = {
        name: subprocess.run(
            [interpreter.executable, "-c", "import shipped_code; print(shipped_code.SIDE)"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=True,
        ).stdout
        for name, interpreter in made.items()
    }
    assert said == {"base": "base\n", "pull-request": "pull request\n"}


def test_the_comment_begins_with_the_headline(eventful, tmp_path):
    (tmp_path / "results").mkdir()
    page = to_markdown(verdicts_document(eventful, "out"))
    (tmp_path / "results" / "verdicts.md").write_text(page)
    gh = tmp_path / "gh"
    gh.write_text("#!/bin/sh\nexit 0\n")
    gh.chmod(0o755)
    subprocess.run(
        ["bash", "-e", "-c", github_steps()["Comment"]],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PULL_REQUEST": "7"},
        cwd=tmp_path,
        check=True,
    )
    comment = (tmp_path / "comment.md").read_text()
    assert page.splitlines()[0] in comment


OURS_IN_THEIRS = ROOT / "examples" / "use_in_your_pipeline.py"


@pytest.mark.nightly
@pytest.mark.slow
def test_our_components_run_between_those_of_others(tmp_path):
    done = subprocess.run(
        [sys.executable, OURS_IN_THEIRS, tmp_path / "out"],
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (tmp_path / "out" / "steps.log").read_text()
    assert "\nFastest: save_restore[use_compression=" in f"\n{done.stdout}"
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.slow
def test_a_pipeline_with_our_components_compiles_with_kfps_own_command(tmp_path):
    package = tmp_path / "mine.yaml"
    kfp = [sys.executable, "-c", "from kfp.cli.__main__ import main; main()", "dsl", "compile"]
    subprocess.run([*kfp, "--py", OURS_IN_THEIRS, "--output", package], check=True)
    strict.pipeline_spec(yaml.safe_load(package.read_text()))
