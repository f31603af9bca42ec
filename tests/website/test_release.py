"""Workflows and notes of a release."""

import json
import re
import subprocess
import tomllib

import pytest
import yaml

from tests.support.blocks import ROOT
from website.changes import notes

WORKFLOWS = {
    path.name: yaml.safe_load(path.read_text())
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
STEPS = [
    pytest.param(name, step, id=f"{name}-{job}-{step.get('name', step.get('uses'))}")
    for name, workflow in WORKFLOWS.items()
    for job, what in workflow["jobs"].items()
    for step in what.get("steps", ())
]
MAKEFILE = (ROOT / "Makefile").read_text()
PROJECT = '[project]\nversion = "0.2.0"\n'
CHANGELOG = """\
# Changelog

## [Unreleased]

## [0.2.0] - 2026-12-01

### Added
- This.

## [0.1.0] - 2026-11-01

- That.
"""


def targets_of(text):
    return re.findall(r"\bmake ((?:[a-z]+ ?)+)", text)


def exists(target):
    return re.search(rf"^(?:[a-z]+ )*{target}(?: [a-z]+)*: ", MAKEFILE, re.MULTILINE)


@pytest.mark.parametrize(("workflow", "step"), STEPS)
def test_a_step_can_run(workflow, step):
    script = step.get("run", "")
    plain = re.sub(r"\$\{\{.*?\}\}", "x", script)
    done = subprocess.run(["bash", "-n"], input=plain, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    for target in " ".join(targets_of(re.sub(r"make \$\{\{.*", "", script))).split():
        assert exists(target), f"the Makefile has no {target}"
    for module in re.findall(r"python -m (website[.\w]*)", script):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists()
    # A value of an event inside a script is code that its author wrote.
    assert set(re.findall(r"\$\{\{ ([a-z]+)\.", script)) <= {"matrix"}


def test_a_release_has_every_image_and_waits_for_the_tests():
    jobs = WORKFLOWS["release.yml"]["jobs"]
    bake = json.loads((ROOT / "images" / "docker-bake.json").read_text())["target"]
    assert set(jobs["images"]["strategy"]["matrix"]["target"]) == {
        name for name in bake if not name.startswith("_")
    }
    assert jobs["tests"]["uses"] == "./.github/workflows/ci.yml"
    assert {jobs[name]["needs"] for name in ("build", "images")} == {"tests"}
    assert {jobs[name]["needs"] for name in ("publish", "package")} == {"build"}


def test_notes_are_those_of_the_version():
    assert notes("v0.2.0", PROJECT, CHANGELOG) == "### Added\n- This.\n"


@pytest.mark.parametrize(
    ("tag", "project", "said"),
    [
        ("v0.3.0", PROJECT, "the tag is v0.3.0, and pyproject.toml has version 0.2.0"),
        ("0.2.0", PROJECT, "the tag is 0.2.0"),
        ("v0.9.0", PROJECT.replace("0.2", "0.9"), r"no heading `## \[0.9.0\] - YYYY-MM-DD`"),
    ],
)
def test_what_does_not_agree_is_refused(tag, project, said):
    with pytest.raises(ValueError, match=said):
        notes(tag, project, CHANGELOG)


def test_our_own_changelog_has_the_usual_form():
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^##+ .*$", text, re.MULTILINE)
    assert headings[0] == "## [Unreleased]"
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert {line[4:] for line in headings if line.startswith("### ")} <= kinds
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)


@pytest.mark.parametrize("file", [*WORKFLOWS, "../../examples/ci/github-actions.yaml"])
def test_actions_are_pinned_by_commit_and_tools_by_hash(file):
    text = (ROOT / ".github" / "workflows" / file).read_text()
    used = re.findall(r"uses: (\S+)(.*)", text)
    loose = [
        action
        for action, note in used
        if not (re.search(r"@[0-9a-f]{40}$", action) and re.fullmatch(r" # v\d+\.\d+\.\d+", note))
    ]
    assert loose in ([], ["./.github/workflows/ci.yml"])
    installs = re.findall(r"pip install.*", text)
    assert [line for line in installs if "hash" not in line and "$ORBAX_BENCH" not in line] == []


def test_make_installs_by_hash_what_it_installs_with_pip():
    installs = re.findall(r"-m pip install.*", MAKEFILE)
    assert [line for line in installs if "--require-hashes" not in line] == [
        "-m pip install --quiet --disable-pip-version-check torch==$(TORCH_VERSION)"
    ]
