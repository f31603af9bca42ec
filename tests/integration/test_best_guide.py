"""The commands of docs/best.md, with fewer rounds than they have there."""

import re
from pathlib import Path

import pytest

from tests.integration.test_guide import execute

pytestmark = pytest.mark.nightly

PAGE = (Path(__file__).parents[2] / "docs" / "best.md").read_text()
BLOCKS = [block.splitlines() for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)]


def test_a_sweep_ends_in_a_recommendation_with_code(tmp_path):
    first, *others = BLOCKS[0]
    run = execute(f"{first} --override num_repeats=3 --no-limits", tmp_path)
    asked = [execute(command, tmp_path) for command in others]
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"(?s)(Best|Tie) for the time of a save: .*?use_ocdbt=", run.stdout)
    for done in asked:
        assert done.returncode == 0, done.stdout + done.stderr
        assert "with context:" in done.stdout
        assert "Pareto front of save, load, bytes" in done.stdout
        assert re.search(r"use_compression=false takes [\d.]+x \[", done.stdout)
