"""The commands of the pages on suite files and on moving over, in their order."""

import re
import shlex
from pathlib import Path

import pytest

from tests.support.processes import run_cli

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
    return run_cli(*words[1:], folder=folder)


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
