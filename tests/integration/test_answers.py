"""Options, plan, interval and recovery, by the commands of docs/answers.md and docs/best.md."""

import re

import pytest

from tests.integration.test_guide import execute
from tests.support.blocks import blocks_of, commands_of

pytestmark = pytest.mark.nightly

QUICKER = {
    "run": " --override num_repeats=2 --override checkpoint_config.scale=0.01",
    "recovery": " --override num_repeats=1 --override benchmarks.0.options.compilation_cache=warm",
}
"""Flags with which a command measures less than on the page."""


def test_a_reader_gets_from_options_to_a_recovery_time(tmp_path):
    said = []
    for command in commands_of("docs/answers.md"):
        done = execute(command + QUICKER.get(command.split()[1], ""), tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout)
    run, best, plan, goodput, recovery = said
    assert re.search(r"(?s)(Best|Tie) for the time of a save: .*?use_ocdbt=", run)
    assert "context = ocp.Context()" in best
    assert "- generator: save_restore" in best
    assert "A save of llama-8b from data=4,fsdp=64 writes 29.9 GiB, at most " in plan
    assert re.search(r" by one of 64 hosts, in [\d.]+ \w+ or more; each device holds ", plan), plan
    assert re.search(r"Save in the background, every [\d.]+ min: [\d.]+ % of the time", goodput)
    assert re.search(r"RECOVERED: after .*\d s, .* of it given", recovery), recovery
    assert "1 of 1 drill came back" in recovery


def test_a_sweep_ends_in_a_recommendation_with_code(tmp_path):
    """The commands of docs/best.md, with fewer rounds than they have there."""
    first, *others = next(
        block.commands for block in blocks_of("docs/best.md") if block.language == "sh"
    )
    run = execute(f"{first} --override num_repeats=3 --no-limits", tmp_path)
    asked = [execute(command, tmp_path) for command in others]
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"(?s)(Best|Tie) for the time of a save: .*?use_ocdbt=", run.stdout)
    for done in asked:
        assert done.returncode == 0, done.stdout + done.stderr
        assert "with context:" in done.stdout
        assert "Pareto front of save, load, bytes" in done.stdout
        assert re.search(r"use_compression=false takes [\d.]+x \[", done.stdout)
