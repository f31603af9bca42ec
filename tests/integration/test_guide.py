"""Promises of the published guide and our README, run as written."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def execute(command, tmp_path):
    """Runs a command of the README, its output below `tmp_path`, and no flag set by the user."""
    words = [word.replace("/tmp/", f"{tmp_path}/") for word in shlex.split(command)]
    program = {
        "orbax-bench": [sys.executable, "-m", "orbax_bench_core.cli"],
        "python": [sys.executable],
    }[words[0]]
    unset = ("XLA_FLAGS", "JAX_ENABLE_X64", "JAX_PLATFORMS")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        [*program, *words[1:]],
        cwd=ROOT,
        env={**environment, "COLUMNS": "160", "PYTHONPATH": str(ROOT / "tests" / "data")},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )


def page_blocks():
    """The commands of the README and of the page on moving over.

    What sets it all up is not among them, nor the tour: tests/website/test_walks.py takes that from
    the wheel.
    """
    for page in ("README.md", "docs/migrating.md"):
        for block in re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
            lines = block.splitlines()
            commands = [line for line in lines if not line.startswith(("make ", ". ", "#"))]
            # test_walks.py also runs `migrate`, on files that the tutorial has.
            if commands and not re.search("run examples/tour.yaml|orbax-bench migrate", block):
                yield commands


@pytest.mark.nightly
@pytest.mark.parametrize("commands", list(page_blocks()), ids=lambda commands: commands[0])
def test_the_commands_of_the_first_pages(commands, tmp_path):
    for command in commands:
        done = execute(command, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        if " ab " in command:
            for operation in ("save", r"load \(\w+\)"):
                shown = rf"^ *{operation} .*(\d %|\dx) \(.* to .*\) "
                assert re.search(shown, done.stdout, re.MULTILINE), done.stdout
        else:
            assert re.search("^Next: orbax-bench ", done.stdout, re.MULTILINE), done.stdout
        assert re.search(rf"(Run directory|Report|Page): {re.escape(str(tmp_path))}", done.stdout)


def test_the_readme_shows_the_tour_as_it_is():
    lines = (ROOT / "examples" / "tour.yaml").read_text().splitlines(keepends=True)
    assert (
        "".join(line for line in lines if not line.startswith("# yaml-language-server")) in README
    )


@pytest.mark.nightly
@pytest.mark.extended
def test_the_guides_own_class_runs_after_changing_its_two_import_lines(tmp_path):
    done = execute("orbax-bench run tests/data/guide.yaml -o /tmp/guide", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 points" in done.stdout
    assert "2 points not verified: nothing was compared" in done.stdout


@pytest.mark.nightly
@pytest.mark.extended
def test_a_notebook_runs_the_tour(tmp_path):
    page = (ROOT / "docs" / "python.md").read_text()
    first, _ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    *lines, last = first.strip().splitlines()
    program = "\n".join([*lines, f"print({last})"])
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["option.use_ocdbt", "operation"] in rows
    assert {row[-2] for row in rows if len(row) > 1} >= {"load", "save", "save_blocking"}
