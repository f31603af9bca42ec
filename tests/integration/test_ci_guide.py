"""The commands of docs/ci.md, run as they are written."""

import re

import pytest

from tests.support.blocks import ROOT, blocks_of, run_in_shell, write_program
from tests.support.webhook import webhook  # noqa: F401 - fixture

pytestmark = pytest.mark.nightly

GUIDE = (ROOT / "docs" / "ci.md").read_text()
SUITE = """
suite_name: nightly
execution: {warmups: 0}
gate: {looks: [10, 20], margin: 4.0}
benchmarks: [{generator: tests.support.scripted.Scripted, options: {}}]
arms: {}
"""


def test_the_commands_of_the_guide_work(webhook, tmp_path):
    """With workers that measure nothing; the webhook is one of this machine."""
    write_program(tmp_path / "bin" / "orbax-bench", "-m tests.support.fake_cli")
    (tmp_path / "examples" / "ci").mkdir(parents=True)
    for place in ("suite.yaml", "examples/ci/suite.yaml"):
        (tmp_path / place).write_text(SUITE)
    blocks = [block.text for block in blocks_of("docs/ci.md") if block.language == "sh"]
    script = "".join(blocks).replace("https://hooks.slack.com/services/...", webhook.url)
    assert webhook.url in script
    done = run_in_shell(f"set -e\n{script}", tmp_path, tmp_path / "bin", PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stdout + done.stderr
    assert webhook.states == ["PASS"]
    assert (tmp_path / "results" / "junit.xml").exists()
    assert len(list((tmp_path / "runs").glob("*/verdicts.md"))) == 1
    assert len(list((tmp_path / "runs").glob("notified-nightly-*.json"))) == 1


def test_the_files_that_the_guide_names_are_there():
    names = re.findall(r"\]\((?!http|#)([^)#]+)", GUIDE)
    assert names
    assert [name for name in names if not (ROOT / "docs" / name).exists()] == []
