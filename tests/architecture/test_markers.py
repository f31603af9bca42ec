"""Every test belongs to one `make` target, which has what the test needs."""

import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from tests.support.targets import OUR_WORKER, WrongTarget, refuse

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
PYTEST = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
MARKERS = [marker.partition(":")[0] for marker in PYTEST["markers"]]
SELECTIONS = {
    target: Expression.compile(expression)
    for target, expression in re.findall(
        r'^(\w+)(?:: (?:setup|torch)\n\t| := )\$\(BIN\)/python -m pytest -m "?([\w ]+?)"? -',
        MAKEFILE,
        re.MULTILINE,
    )
}


def recipe(target):
    return re.search(rf"^{target}: setup\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE).group(1)


def test_ci_runs_all_targets_but_those_of_hours_and_of_a_cluster():
    assert set(SELECTIONS) == {"UNIT", "slow", "nightly", "extended", "cluster"}
    parts = {"lint", "typecheck", "unit-first", "unit-others", "slow"}
    assert parts <= set(recipe("test").split())
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [line for line in lines if line.startswith("make ")] == ["make test", "make nightly"]


def test_every_unit_test_is_in_one_half():
    folders = re.search(r"^FIRST := (.*)$", MAKEFILE, re.MULTILINE).group(1).split()
    assert all((ROOT / "tests" / folder).is_dir() for folder in folders)
    first, others = (recipe(f"unit-{half}").split() for half in ("first", "others"))
    assert (first[0], first[-1]) == ("$(UNIT)", "$(FIRST:%=tests/%)")
    assert (others[0], others[-2:]) == ("$(UNIT)", ["$(FIRST:%=--ignore", "tests/%)"])
    assert {"unit-first", "unit-others"} <= set(recipe("unit").split())


@pytest.mark.parametrize(
    "marks",
    [
        frozenset(marks)
        for count in range(len(MARKERS) + 1)
        for marks in itertools.combinations(MARKERS, count)
    ],
    ids=lambda marks: " and ".join(sorted(marks)) or "no marker",
)
def test_a_test_belongs_to_exactly_one_target(marks):
    chosen = [
        target
        for target, selection in SELECTIONS.items()
        if selection.evaluate(lambda name, **_: name in marks)
    ]
    assert len(chosen) == 1, f"tests with {set(marks)} run in {chosen}"


def test_a_program_that_needs_root_is_for_nightly_tests():
    with pytest.raises(WrongTarget, match="mark this test nightly"):
        refuse("mount", ["mount"], None, {"slow"})
    refuse("mount", ["mount"], None, {"nightly"})


def test_a_stand_in_for_such_a_program_is_for_all(tmp_path):
    stand_in = tmp_path / "docker"
    stand_in.write_text("#!/bin/sh\n")
    stand_in.chmod(0o755)
    refuse("docker", ["docker", "version"], {"PATH": str(tmp_path)}, set())


def test_a_worker_is_for_slow_tests():
    with pytest.raises(WrongTarget, match="mark this test slow"):
        refuse(sys.executable, [sys.executable, "-m", OUR_WORKER], None, set())
    refuse(sys.executable, [sys.executable, "-m", OUR_WORKER], None, {"slow"})


def test_what_a_test_starts_is_watched():
    with pytest.raises(WrongTarget, match=OUR_WORKER.partition(".")[0] + "|worker"):
        subprocess.run([sys.executable, "-m", OUR_WORKER, "--help"], check=False)
