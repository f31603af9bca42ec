"""The sitting of docs/answers.md: options, plan, interval and recovery, by the page's commands."""

import re
from pathlib import Path

import pytest

from tests.integration.test_guide import execute

pytestmark = pytest.mark.nightly

PAGE = (Path(__file__).parents[2] / "docs" / "answers.md").read_text()
COMMANDS = [
    line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
]
QUICKER = {
    "run": " --override num_repeats=2 --override checkpoint_config.scale=0.01",
    "recovery": " --override num_repeats=1 --override benchmarks.0.options.compilation_cache=warm",
}
"""Flags with which a command measures less than on the page."""


def test_a_reader_gets_from_options_to_a_recovery_time(tmp_path):
    said = []
    for command in COMMANDS:
        done = execute(command + QUICKER.get(command.split()[1], ""), tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout)
    run, best, plan, goodput, recovery = said
    assert re.search(r"(?s)(Best|Tie) for the time of a save: .*?use_ocdbt=", run)
    assert "context = ocp.Context()" in best
    assert "- generator: save_restore" in best
    assert "256 devices on 64 hosts of 4" in plan
    assert re.search(r"elements +8,030,261,248;", plan)
    assert re.search(r"time of a save +at least [\d.]+", plan), plan
    assert re.search(r"Save in the background, every [\d.]+ min: [\d.]+% of the time", goodput)
    assert re.search(r"^recovery +all of them +.*\d s", recovery, re.MULTILINE), recovery
    assert "1 of 1 drill came back" in recovery
