"""The commands of docs/ci.md, run as they are written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.webhook import webhook  # noqa: F401 - fixture

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "ci.md").read_text()
SUITE = """
suite_name: nightly
execution: {warmups: 0}
gate: {looks: [10, 20], margin: 4.0}
benchmarks: [{generator: tests.support.scripted.Scripted, options: {}}]
arms: {}
"""


def blocks():
    """The shell blocks of the guide."""
    return re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)


def test_the_commands_of_the_guide_work(webhook, tmp_path):
    """With workers that measure nothing; the webhook is one of this machine."""
    bench = tmp_path / "bin" / "orbax-bench"
    bench.parent.mkdir()
    bench.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tests.support.fake_cli "$@"\n')
    bench.chmod(0o755)
    (tmp_path / "examples" / "ci").mkdir(parents=True)
    for place in ("suite.yaml", "examples/ci/suite.yaml"):
        (tmp_path / place).write_text(SUITE)
    script = "".join(blocks()).replace("https://hooks.slack.com/services/...", webhook.url)
    assert webhook.url in script
    done = subprocess.run(
        ["bash", "-ec", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{bench.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert webhook.states == ["PASS"]
    assert (tmp_path / "results" / "junit.xml").exists()
    assert len(list((tmp_path / "runs").glob("*/verdicts.md"))) == 1
    assert len(list((tmp_path / "runs").glob("notified-nightly-*.json"))) == 1


def test_the_files_that_the_guide_names_are_there():
    names = re.findall(r"\]\((?!http|#)([^)#]+)", GUIDE)
    assert names
    assert [name for name in names if not (ROOT / "docs" / name).exists()] == []
