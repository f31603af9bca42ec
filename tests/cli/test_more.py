"""`--more`: an INCONCLUSIVE comparison goes on in its directory, with what is measured."""

import collections
import json
import os
import shutil
import signal

import pytest
import yaml

import orbax_bench_core
from orbax_bench_core import execute
from orbax_bench_core.analysis.verdicts import verdicts_document
from orbax_bench_core.records import RunDirectory
from tests.support.fake_cli import fake_workers
from tests.support.processes import FAKE_CLI, start_cli, wait_until
from tests.support.scripted import NAME
from tests.support.shown import next_command, terminal

pytestmark = pytest.mark.slow

HALF = "0 3 4 7 8 10 13 14 17 18 20 23 24 27 28 30 33 34 37 38 40 43 44 47 48"
SLOW_FROM_TEN_ON = " ".join(["0 3 4 7 8", *map(str, range(10, 50))])
"""Operations of the candidate that take longer: half of the first ten leave everything open."""


class Case:
    """A comparison on fake workers, with looks at 10, 18, 30 and 50 operations per arm."""

    def __init__(self, folder, orbax_bench):
        self.suite, self.out = folder / "suite.yaml", folder / "out"
        self._call = orbax_bench
        self.write(SLOW_FROM_TEN_ON)

    def write(self, slow_at, slow_by=1.4, **gate):
        content = {
            "suite_name": "goes_on",
            "execution": {"warmups": 0, "retries": 0},
            "gate": {"looks": [10], "primary": ["save"], "seed": 7, **gate},
            "benchmarks": [{"generator": NAME, "options": {"slow_by": slow_by}}],
            "arms": {"candidate": {"options": {"slow_at": slow_at}}},
        }
        self.suite.write_text(yaml.safe_dump(content))

    def words(self, *flags):
        return "ab", self.suite, "-o", self.out, "--no-lock", *flags

    def ab(self, *flags):
        return self.call(*self.words(*flags))

    def call(self, *words):
        done = self._call(*words)
        return done.code, " ".join(f"{done.out} {done.err}".split())

    @property
    def verdict(self):
        """Word of the only point, and operations per arm that it is of."""
        (point,) = json.loads((self.out / "verdicts.json").read_text())["points"]
        return point["word"], point["attempts"]["candidate"]["count"]

    @property
    def records(self):
        return {
            str(file.relative_to(self.out)): file.read_bytes()
            for file in self.out.glob("records/*/repeat_*/host_0.json")
        }


@pytest.fixture
def case(tmp_path, orbax_bench):
    with fake_workers():
        yield Case(tmp_path, orbax_bench)


@pytest.fixture
def begun(case, once, tmp_path_factory):
    """A comparison that is INCONCLUSIVE after the first look: a copy of one that is made once."""

    def make():
        code, said = case.ab()
        assert (code, case.verdict) == (4, ("INCONCLUSIVE", 10))
        assert "gate.looks" not in said
        return shutil.move(case.out, tmp_path_factory.mktemp("begun") / "out")

    shutil.copytree(once("begun", make), case.out)
    return case


def test_without_a_comparison_there_is_nothing_to_go_on_with(case):
    code, said = case.ab("--more")
    assert (code, case.out.exists()) == (2, False)
    assert f"--more: {case.out} has no comparison to go on with; leave --more out to begin" in said


def test_it_goes_on_look_by_look_to_a_verdict_and_keeps_what_is_measured(begun):
    case, before = begun, begun.records
    code, said = case.ab("--more")
    assert (code, case.verdict) == (4, ("INCONCLUSIVE", 18))
    assert "goes on from 10 to 18 operations per arm" in said
    again = f"Next: orbax-bench ab {case.suite} -o {case.out} --more"
    assert f"p to 30 operations per side probably tell: {again}" in said
    code, said = case.ab("--more")
    assert (code, case.verdict) == (3, ("REGRESSION", 30))
    after = case.records
    assert {name: after[name] for name in before} == before
    again = case.ab("--more")
    assert (again[0], case.records) == (3, after)
    assert "REGRESSION, nothing is added: it has its verdict" in again[1]


def test_with_a_number_it_goes_on_to_the_look_that_adds_as_many_until_none_is_left(case):
    case.write(HALF)
    assert case.ab()[0] == 4
    code, said = case.ab("--more", "10")
    assert (code, case.verdict) == (4, ("INCONCLUSIVE", 30))
    assert "goes on from 10 to 30 operations per arm" in said
    code, said = case.ab("--more=500")
    assert (code, case.verdict) == (4, ("INCONCLUSIVE", 50))
    assert "No look is left. Make the operation longer" in said
    measured = case.records
    code, said = case.ab("--more")
    assert (code, case.records) == (4, measured)
    assert "nothing is added: all looks are used up" in said


def test_killed_in_the_middle_the_same_command_goes_on_to_the_look_that_was_granted(begun):
    case = begun
    process = start_cli(*case.words("--more"), cli=FAKE_CLI)
    wait_until(lambda: len(case.records) >= 24)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    before = case.records
    assert 20 < len(before) < 36
    code, said = case.ab("--more")
    assert (code, case.verdict) == (4, ("INCONCLUSIVE", 18))
    assert "nothing is added: it is not at its end, and goes on without that" in said
    assert {name: case.records[name] for name in before} == before
    assert list(RunDirectory(str(case.out)).read_info().more.values()) == [18]


def test_what_was_compared_by_a_python_call_goes_on_by_the_command_that_it_names(case):
    case.write(SLOW_FROM_TEN_ON, slow_by=1.0)
    content = yaml.safe_load(case.suite.read_text())
    arms = content.pop("arms")
    case.suite.write_text(yaml.safe_dump(content))
    for more in (None, 0):
        run = orbax_bench_core.ab(
            str(case.suite),
            str(case.out),
            arms=arms,
            overrides=["benchmarks.0.options.slow_by=1.4"],
            more=more,
            settings=execute.RunSettings(),
        )
    found = verdicts_document(orbax_bench_core.read_verdicts(run), str(case.out))
    words = next_command(terminal(found, width=1000))
    assert (words[0], words[-1]) == ("ab", "--more")
    code, said = case.call(*words, "--no-lock")
    assert (code, case.verdict) == (3, ("REGRESSION", 30)), said


def test_another_suite_or_other_rules_are_refused_and_nothing_is_granted(begun):
    case = begun
    before = (case.out / "run.json").read_bytes()
    case.write(SLOW_FROM_TEN_ON, margin=0.3)
    code, said = case.ab("--more")
    assert (code, "was measured for other rules (margin 15 % -> 30 %)" in said) == (2, True)
    case.write(HALF)
    code, said = case.ab("--more")
    assert (code, "holds a run of another suite" in said) == (2, True)
    assert (case.out / "run.json").read_bytes() == before


def test_a_point_that_passed_is_not_measured_again(case):
    case.write(HALF, slow_by=[1.0, 1.4])
    assert case.ab()[0] == 4
    before = collections.Counter(name.split("/")[1] for name in case.records)
    code, said = case.ab("--more")
    after = collections.Counter(name.split("/")[1] for name in case.records)
    assert (code, sorted(before.values()), sorted(after.values())) == (4, [20, 20], [20, 36])
    assert "PASS, nothing is added: it has its verdict" in said
    assert "goes on from 10 to 18 operations per arm" in said
