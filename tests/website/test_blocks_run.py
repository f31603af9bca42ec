"""Shell blocks of pages, run as they stand by the real command line and real workers.

Names of files stand for any on these pages; a suite of some KiB has the name. What takes longer
than half a minute is for `make extended`.
"""

import json
import re
import shlex
import subprocess
import sys

import pytest

from tests.support.blocks import ROOT, commands_of, run_in_shell, write_program
from tests.support.installed import Installed

NEEDS = {
    r"submit |schedule |pause ": "a service that takes pipelines",
    r"--target (docker|kfp|vertex)": "Docker, or a service",
    r"^docker ": "Docker",
    r"^tensorboard ": "a server, which does not end",
    r"pytorch_llama8b|framework_comparison_8b": "a model of 8 billion parameters",
}
"""What commands need that are not run here."""

ARRAY = "{params: {dtype: float32, shape: [64, 64]}}"
HEAD = "suite_name: small\nexecution: {warmups: 0}\nnum_repeats: 1\n"
PLAIN = f"""{HEAD}
checkpoint_config: {{spec: {ARRAY}}}
benchmarks: [{{generator: save_restore, options: {{}}}}]
"""
ARMS = f"""{PLAIN}
arms: {{candidate: {{options: {{use_compression: false}}}}}}
gate: {{looks: [10], margin: 9.0}}
"""
FRAMEWORKS = f"""{PLAIN}
arms: {{baseline: {{generator: pytorch_dcp}}, candidate: {{generator: save_restore}}}}
gate: {{looks: [10]}}
"""
SIZES = f"""{HEAD}
checkpoint_configs:
- spec: {{params: {{dtype: float32, shape: [64, 64]}}}}
- spec: {{params: {{dtype: float32, shape: [128, 64]}}}}
- spec: {{params: {{dtype: float32, shape: [256, 64]}}}}
benchmarks: [{{generator: save_restore, options: {{async_enabled: [false, true]}}}}]
"""

more = pytest.mark.extended
PAGES = [
    pytest.param("docs/pages.md", {"suite.yaml": ARMS}, id="pages"),
    pytest.param("docs/pipelines.md", {"SUITE.yaml": PLAIN}, id="pipelines"),
    pytest.param("docs/pipelines/steps.md", {"suite.yaml": PLAIN}, id="steps"),
    pytest.param("docs/pipelines/local.md", {"SUITE.yaml": PLAIN}, id="local", marks=more),
    pytest.param("docs/pipelines/sweep.md", {"SUITE.yaml": PLAIN}, id="sweep", marks=more),
    pytest.param("docs/pipelines/regression.md", {"SUITE.yaml": ARMS}, id="regression", marks=more),
    pytest.param(
        "docs/pipelines/calibration.md", {"SUITE.yaml": PLAIN}, id="calibration", marks=more
    ),
    pytest.param(
        "docs/pipelines/framework-comparison.md",
        {"SUITE.yaml": FRAMEWORKS},
        id="framework-comparison",
        marks=more,
    ),
    pytest.param(
        "docs/pipelines/async-study.md", {"SUITE.yaml": SIZES}, id="async-study", marks=more
    ),
    pytest.param("docs/async-study.md", {}, id="examples/async_study", marks=more),
    pytest.param("docs/frameworks.md", {}, id="examples/framework_comparison", marks=more),
]
"""Pages, and the files that their commands name."""


class Place:
    """A folder with the examples, in which commands of pages are run."""

    def __init__(self, folder):
        self.folder, self._bin = folder, folder.parent / "bin"
        write_program(self._bin / "orbax-bench", "-m orbax_bench_core.cli")
        write_program(self._bin / "python", "")
        folder.mkdir()
        (folder / "examples").symlink_to(ROOT / "examples")

    def run(self, command, *, codes=(0,), **variables):
        """Runs a command; absolute folders of a page are below this one, and so is home."""
        script = re.sub(r"(?<= )/(tmp|shared)/", rf"{self.folder}/\1/", command)
        variables = {**variables, "HOME": str(self.folder), "COLUMNS": "80"}
        variables.pop("PATH", None)
        done = run_in_shell(f"unset JAX_PLATFORMS\n{script}", self.folder, self._bin, **variables)
        assert done.returncode in codes, command + done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "place")


def commands_here(page):
    """The commands of a page that need nothing but this machine."""
    return [
        command
        for command in commands_of(page)
        if not any(re.search(pattern, command) for pattern in NEEDS)
    ]


@pytest.mark.nightly
@pytest.mark.parametrize(("page", "files"), PAGES)
def test_the_commands_of_a_page_run_as_they_stand(place, page, files):
    if "framework" in page:
        pytest.importorskip("torch", reason="needs PyTorch: make torch")
    for name, text in files.items():
        (place.folder / name).write_text(text)
    if page == "docs/pages.md":  # it speaks of runs that are there
        place.run("orbax-bench ab suite.yaml -o ~/nightly/2026-03-02 --quiet", codes=(0, 4))
    commands = commands_here(page)
    assert commands
    for command in commands:
        # A comparison may find anything on a machine that is busy.
        place.run(command, codes=(0, 3, 4) if " ab " in command else (0,))
    pages = [path.name for path in place.folder.rglob("*.html")]
    assert pages or page == "docs/pipelines/steps.md"


@pytest.mark.nightly
@pytest.mark.extended
def test_a_sharding_file_is_made_of_a_checkpoint_in_a_bucket(place, emulator):
    save = f"""
import pathlib
import jax.numpy as jnp
from etils import epath
from orbax.checkpoint import v1 as ocp
local = pathlib.Path({str(place.folder / "saved")!r})
ocp.save(local, {{"w": jnp.zeros((16, 8))}})
for file in filter(pathlib.Path.is_file, local.rglob("*")):
    remote = epath.Path("gs://bench-bucket/run/100/items") / str(file.relative_to(local))
    remote.parent.mkdir(parents=True, exist_ok=True)
    remote.write_bytes(file.read_bytes())
"""
    place.run(f"python -c {shlex.quote(save)}", **emulator)
    (command,) = (one for one in commands_here("docs/checkpoints.md") if " sharding " in one)
    place.run(command.replace("gs://bucket/", "gs://bench-bucket/"), **emulator)
    made = json.loads((place.folder / "sharding.json").read_text())
    assert made["w"]["shape"] == [16, 8]


@pytest.mark.nightly
@pytest.mark.extended
@pytest.mark.parametrize("page", ["docs/authoring.md", "examples/own_package/README.md"])
def test_a_package_of_ones_own_is_installed_and_run(installed, tmp_path, page):
    """`pip` is that of uv, which takes seconds; everything else is as it stands."""
    uv, own = f'"{sys.executable}" -m uv', Installed(tmp_path / "env", installed.wheel, 0.0)
    made = installed.run(
        f'{uv} -q venv --python "{sys.executable}" {tmp_path}/env && '
        f"{uv} -q pip install --python {own.bin}/python {own.wheel}[kfp] pytest",
        tmp_path,
    )
    assert made.returncode == 0, made.stderr
    pip = own.bin / "pip"
    pip.write_text(f'#!/bin/sh\nexec {uv} pip "$@" --python {own.bin}/python\n')
    pip.chmod(0o755)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = commands_here(page)
    assert "pip install ./examples/own_package" in commands
    for command in commands:
        words = command.replace(" /tmp/partial", f" {tmp_path}/partial{hash(command)}")
        done = own.run(words, tmp_path)
        assert done.returncode == 0, command + done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.extended
def test_what_a_release_is_made_of_is_made_by_the_page(tmp_path):
    for command in commands_here("docs/release.md"):
        words = command.replace("dist/package", str(tmp_path)).replace(
            ".venv/bin/python", sys.executable
        )
        subprocess.run(["bash", "-c", words], cwd=ROOT, check=True, timeout=550)
    assert len(list(tmp_path.glob("*.whl"))) == 1


def test_what_is_not_run_needs_something_else():
    """Each pattern is that of a command, so that none hides one by chance."""
    pages = {param.values[0] for param in PAGES}
    pages |= {"examples/own_package/README.md"}
    given = [command for page in pages for command in commands_of(page)]
    assert all(any(re.search(pattern, one) for one in given) for pattern in NEEDS)
