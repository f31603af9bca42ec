"""The commands of the pages on suite files and on moving over, in their order."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "suites.md").read_text()
MOVING = (ROOT / "docs" / "migrating.md").read_text()
UPSTREAM = "orbax.checkpoint._src.testing.benchmarks"
MODULE = f"from {UPSTREAM}.core import core\n"
CLASS = f"{UPSTREAM}.v1.benchmark.Benchmark"
SUITE = f"suite_name: s\nbenchmarks: [{{generator: {CLASS}, options: {{}}}}]\n"


def execute(command, folder):
    words = shlex.split(command)
    assert words[0] == "orbax-bench"
    return subprocess.run(
        [sys.executable, "-m", "orbax_bench_core.cli", *words[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.nightly
def test_the_commands_of_the_pages(tmp_path):
    (tmp_path / "my_benchmark.py").write_text(MODULE)
    (tmp_path / "my_suite.yaml").write_text(SUITE)
    commands = re.findall(r"^orbax-bench .*$", PAGE + MOVING, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        done = execute(command, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "\n4 points\n" in execute("orbax-bench expand suite.yaml", tmp_path).stdout
    assert "authoring as core" in (tmp_path / "my_benchmark.py").read_text()
    assert "generator: save_restore" in (tmp_path / "my_suite.yaml").read_text()
    (line,) = re.findall(r"^```yaml\n(.*?)\n```", PAGE, re.MULTILINE)
    assert (tmp_path / "suite.yaml").read_text().startswith(f"{line}\n")
    assert (tmp_path / "orbax-bench.schema.json").exists()


@pytest.mark.nightly
@pytest.mark.extended
def test_two_releases_of_orbax_are_compared(tmp_path):
    """The environments are made here; `upgrade` with releases that are known is a unit test."""
    (command,) = re.findall(
        r"```sh\n(orbax-bench upgrade .*)\n```", (ROOT / "docs" / "environments.md").read_text()
    )
    gate = "--override gate.looks=[10] --override gate.margin=0.5 --allow-inconclusive --no-lock"
    done = execute(f"{command} {gate}", tmp_path)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert "About 1 to " in done.stdout
    assert "candidate: environment=orbax-checkpoint-0.12.8" in done.stdout
    assert (tmp_path / "upgrade-0.11.32-0.12.8" / "verdicts.html").exists()
