"""The page docs/orbax-options.md, and the suite that it is made from."""

import math
import re
from pathlib import Path

import pytest
import yaml

from tests.support.processes import run_cli
from website import orbax_options
from website.__main__ import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SUITE = """
suite_name: two options
num_repeats: 1
execution: {warmups: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8, 8]}}}
benchmarks:
- {generator: save_restore, options: {use_ocdbt: [true, false]}}
- {generator: safetensors_load, options: {load_async: [false, true]}}
"""


@pytest.mark.slow
def test_a_run_gives_a_row_for_each_option_with_all_that_was_measured(tmp_path, monkeypatch):
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    done = run_cli("run", suite, "-o", tmp_path / "run", "--no-lock", "--no-limits")
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.setattr(orbax_options, "PAGE", tmp_path / "page.md")
    assert main(["options", str(tmp_path / "run")]) == 0
    rows = [line for line in (tmp_path / "page.md").read_text().splitlines() if "` of `" in line]
    ocdbt, load = rows
    assert ocdbt.startswith("| `use_ocdbt` of `save_restore` | Store arrays in OCDBT")
    assert "| `false` over `true` | whole save: " in ocdbt
    assert "files: " in ocdbt
    assert "| files | false, only where" in ocdbt
    assert "(1 rounds are too few for an interval)" in load
    assert "time that a load blocks: " in load


def test_the_page_has_every_option_that_the_suite_sweeps_and_no_other():
    entries = yaml.safe_load((EXAMPLES / "orbax_today.yaml").read_text())["benchmarks"]
    swept = {
        (name, entry["generator"])
        for entry in entries
        for name in entry["options"].keys() & orbax_options.ADVICE.keys()
    }
    assert {name for name, _ in swept} == orbax_options.ADVICE.keys()
    page = orbax_options.PAGE.read_text()
    assert page.count("` of `") == len(swept)
    assert all(f"| `{name}` of `{benchmark}` |" in page for name, benchmark in swept)


@pytest.mark.nightly
def test_the_commands_of_orbax_options_md_make_its_rows(tmp_path, monkeypatch):
    committed = orbax_options.PAGE.read_text()
    run, make = re.findall(r"^(?:orbax-bench|python -m website) (.+)$", committed, re.MULTILINE)
    words = run.replace("/tmp/", f"{tmp_path}/").split()
    # One round in place of eight, and none waits for it: it would hold the machine for minutes.
    quick = ("--override", "num_repeats=1", "--no-lock")
    done = run_cli(*words, *quick, folder=EXAMPLES.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.setattr(orbax_options, "PAGE", tmp_path / "page.md")
    assert main(make.replace("/tmp/", f"{tmp_path}/").split()) == 0
    kind = re.compile(r"^\| `\w+` of `\w+` \|", re.MULTILINE)
    assert kind.findall((tmp_path / "page.md").read_text()) == kind.findall(committed)


@pytest.mark.parametrize("rounds", range(1, 30))
def test_an_interval_has_its_confidence_and_no_narrower_one_has(rounds):
    def outside(place):
        return 2 * sum(math.comb(rounds, k) for k in range(place + 1)) / 2**rounds

    place = orbax_options.order_statistic(rounds)
    assert place is None or outside(place) <= 0.05
    assert outside(0 if place is None else place + 1) > 0.05
