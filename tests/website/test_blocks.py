"""Code blocks of every page: each is run somewhere, or there is a reason why not."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from orbax_bench_core.config import Suite, parse_suite
from tests.support.blocks import ROOT, blocks_of, commands_of, words_of
from tests.support.command_lines import command_lines, parse

PAGES = [
    "README.md",
    "images/README.md",
    "examples/own_package/README.md",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))),
]
GENERATED = ("docs/reference/", "docs/metrics.md", "docs/schema/")
BLOCKS = [block for page in PAGES if not page.startswith(GENERATED) for block in blocks_of(page)]
SHELL = [block for block in BLOCKS if block.language == "sh"]
RUN_BY = {
    "README.md": "tests/integration/test_guide.py",
    "docs/a-quarter-later.md": "tests/website/test_a_quarter_later.py",
    "docs/answers.md": "tests/integration/test_answers.py",
    "docs/async-study.md": "tests/website/test_blocks_run.py",
    "docs/authoring.md": "tests/website/test_blocks_run.py",
    "docs/best.md": "tests/integration/test_answers.py",
    "docs/checkpoints.md": "tests/website/test_blocks_run.py",
    "docs/ci.md": "tests/integration/test_ci_guide.py",
    "docs/environments.md": "tests/website/test_blocks.py",
    "docs/frameworks.md": "tests/website/test_blocks_run.py",
    "docs/hosts.md": "tests/integration/test_cluster_guide.py",
    "docs/inspect.md": "tests/integration/test_planning_pages.py",
    "docs/lineage.md": "tests/website/test_pages_run.py",
    "docs/migrating.md": "tests/integration/test_guide.py",
    "docs/orbax-options.md": "tests/website/test_orbax_options.py",
    "docs/overrides.md": "tests/website/test_pages_run.py",
    "docs/pages.md": "tests/website/test_blocks_run.py",
    "docs/pipelines.md": "tests/website/test_blocks_run.py",
    "docs/pipelines/async-study.md": "tests/website/test_blocks_run.py",
    "docs/pipelines/calibration.md": "tests/website/test_blocks_run.py",
    "docs/pipelines/framework-comparison.md": "tests/website/test_blocks_run.py",
    "docs/pipelines/kubeflow.md": "tests/pipelines/test_engine_pages.py",
    "docs/pipelines/local.md": "tests/website/test_blocks_run.py",
    "docs/pipelines/regression.md": "tests/website/test_blocks_run.py",
    "docs/pipelines/steps.md": "tests/website/test_blocks_run.py",
    "docs/pipelines/sweep.md": "tests/website/test_blocks_run.py",
    "docs/pipelines/vertex.md": "tests/pipelines/test_engine_pages.py",
    "docs/planning.md": "tests/integration/test_planning_pages.py",
    "docs/recovery.md": "tests/integration/test_recovery.py",
    "docs/launch/mpi.md": "tests/launchers/test_open_mpi.py",
    "docs/launch/slurm.md": "tests/launchers/test_slurm_cluster.py",
    "docs/release.md": "tests/website/test_blocks_run.py",
    "docs/soak.md": "tests/integration/test_recovery.py",
    "docs/training-job.md": "tests/recorder/test_page.py",
    "docs/suites.md": "tests/integration/test_suite_pages.py",
    "docs/tutorials/ml-engineer.md": "tests/website/test_walks.py",
    "docs/tutorials/orbax-maintainer.md": "tests/website/test_walks.py",
    "docs/tutorials/platform-engineer.md": "tests/website/test_walks.py",
    "docs/verdicts.md": "tests/website/test_pages_run.py",
    "examples/own_package/README.md": "tests/website/test_blocks_run.py",
}
"""The test that runs the shell blocks of a page."""

NOT_RUN = {
    "docs/gallery.md": "the commands of other pages, whose tests run them, on other suites",
    "docs/launch/jobset.md": "needs a Kubernetes cluster",
    "docs/launch/pathways.md": "needs a Pathways cluster",
    "docs/launch/ray.md": "needs a Ray cluster; tests/launchers start one",
    "docs/launch/tpu-vm.md": "needs TPU VMs",
    "docs/launch/vertex.md": "needs Vertex AI",
    "docs/launch/xpk.md": "needs a GKE cluster",
    "docs/pipelines/argo.md": "needs Argo; tests/pipelines/test_argo.py runs its commands",
    "images/README.md": "needs Docker; tests/images run the same",
}
"""Reasons for which the shell blocks of a page are not run as they stand, though what can be told
without is tested."""


def ids(block):
    return block.name


@pytest.mark.parametrize("page", sorted({block.page for block in SHELL}))
def test_the_commands_of_a_page_are_run_or_there_is_a_reason(page):
    assert (page in RUN_BY) != (page in NOT_RUN), f"name a test of {page}, or why there is none"
    if test := RUN_BY.get(page):
        assert Path(page).stem in (ROOT / test).read_text(), f"{test} does not read {page}"


def test_the_command_on_environments_is_one_that_the_walk_of_ml_engineers_runs():
    there, walk = map(commands_of, ("docs/environments.md", "docs/tutorials/ml-engineer.md"))
    assert there
    assert all(any(one.startswith(command) for one in walk) for command in there)


PROGRAM = re.compile(
    r"(\.?[\w-]+/)*(orbax-bench|python3?|pip|export|make|docker|ln|gcloud|sudo|pytest|cp|rm|mpirun|srun"
    r"|sbatch|tensorboard|argo|xpk)|\."
)
"""What the commands of our pages begin with; anything else is a line that was wrapped."""


@pytest.mark.parametrize("block", SHELL, ids=ids)
def test_shell_blocks_are_sound(block):
    """Syntax, lines that go on, programs, and variables that hold a path with blanks."""
    done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"\\(?!\n)", block.text), "a backslash that is not at the end of its line"
    begun = [words[0] for words in map(words_of, block.commands) if words]
    assert [word for word in begun if not PROGRAM.fullmatch(word)] == []
    bare = re.sub(r'"[^"]*"|\'[^\']*\'|^\w+=\S*$|export \w+=\S*', "", block.text, flags=re.M)
    assert not re.search(r"\$(?!\()", bare), "a variable that is not quoted"


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language in ("sh", "text")], ids=ids)
def test_the_parser_takes_every_command_of_ours(block):
    """Also those for clusters, which nobody here can run, and those of cron."""
    for words in command_lines(block.text):
        parse(words)


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "yaml"], ids=ids)
def test_yaml_is_a_suite_or_a_part_of_one(block):
    given = yaml.safe_load(block.text) or {}
    known = {*Suite.model_fields, "checkpoint_config", "mesh_config"}
    if not set(given) & known:
        pytest.skip("YAML of another program")
    whole = {
        "suite_name": "s",
        "benchmarks": [{"generator": "save_restore", "options": {}}],
        **given,
    }
    for name, arm in (whole.get("arms") or {}).items():
        if arm and "environment" in arm and "environments" not in given:
            whole.setdefault("environments", []).append(
                {"name": arm["environment"], "requirements": [name]}
            )
    parse_suite(json.dumps(whole), "page.yaml")


def test_the_dags_on_airflow_are_the_file_that_tests_of_airflow_run():
    (dags,) = (block for block in blocks_of("docs/pipelines/airflow.md") if block.title)
    assert dags.text == (ROOT / "examples" / "airflow" / dags.title).read_text()
