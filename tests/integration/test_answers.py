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
CHOICE = r"(BEST|TIE|UNDECIDED): (.|\n)*use_ocdbt="
"""The headline of a choice of options."""


def test_a_reader_gets_from_options_to_a_recovery_time(tmp_path):
    said = []
    for command in commands_of("docs/answers.md"):
        done = execute(command + QUICKER.get(command.split()[1], ""), tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout)
    run, best, plan, goodput, recovery = said
    assert re.search(CHOICE, run), run
    assert re.search(CHOICE, best), best
    assert "In orbax-checkpoint " in best
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
    assert re.search(CHOICE, run.stdout), run.stdout
    for done in asked:
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(CHOICE, done.stdout), done.stdout
        assert "In orbax-checkpoint " in done.stdout
