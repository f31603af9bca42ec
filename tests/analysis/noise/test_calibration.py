"""Verdicts on identical arms: which pairs are tests, and what they count as."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.analysis.noise import Passport
from orbax_bench_core.analysis.noise.calibration import (
    AaTest,
    aa_elements,
    aa_tests,
    passport_table,
)
from orbax_bench_core.analysis.noise.passport import Noise
from orbax_bench_core.baselines import find_runs
from orbax_bench_core.config import GateConfig
from orbax_bench_core.document import Document, print_document
from orbax_bench_core.sweep import Pair
from tests.support.paired_runs import MONDAY, make_paired_run, make_separate_run  # noqa: F401 - fixtures


@pytest.fixture
def tests_of():
    """Returns the A/A tests of a run directory."""

    def make(run):
        (found,) = find_runs([str(run.root)])
        return aa_tests(found, found.read())

    return make


def test_identical_arms_are_a_test(tests_of, make_paired_run):
    (test,) = tests_of(make_paired_run(0))
    assert (test.run_id, test.word, test.alpha, test.operations) == ("run000", "PASS", 0.01, 10)
    assert test.ratio == pytest.approx(1.0, abs=0.05)


def test_a_false_alarm_is_counted(tests_of, make_paired_run):
    (test,) = tests_of(make_paired_run(0, 2.0, blocks=10))
    assert test.word == "REGRESSION"


def test_at_no_tolerance_a_small_offset_is_seen(tests_of, make_paired_run):
    # The gate passes 2 %, as it should; an A/A test that does so too would be blind.
    (test,) = tests_of(make_paired_run(0, 1.02, blocks=15, sigma=0.005))
    assert (test.word, test.differs) == ("PASS", True)
    (faster,) = tests_of(make_paired_run(1, 0.98, blocks=15, sigma=0.005))
    assert faster.differs


def test_at_no_tolerance_the_same_arms_are_the_same(tests_of, make_paired_run):
    tests = [tests_of(make_paired_run(day))[0] for day in range(4)]
    assert not any(test.differs for test in tests)


def test_different_arms_are_none(tests_of, make_paired_run, make_point):
    pair = make_point(candidate=make_point(options={"a": 1}))
    assert not pair.identical
    assert tests_of(make_paired_run(0, pair=pair)) == []


def test_a_run_that_was_never_looked_at_is_none(tests_of, make_paired_run):
    assert tests_of(make_paired_run(0, blocks=2)) == []


def test_separate_runs_are_none(tests_of, make_separate_run):
    assert tests_of(make_separate_run(0)) == []


@pytest.mark.parametrize(("family", "count"), [("point", 2), ("suite", 1)])
def test_points_that_share_alpha_are_one_test(make_paired_run, make_point, tests_of, family, count):
    pairs = [make_point(options={"a": a}) for a in (1, 2)]
    runs = [
        make_paired_run(0, pair=Pair(baseline=one, candidate=one), folder="one") for one in pairs
    ]
    run = runs[0]
    info = run.read_info()
    points = tuple(Pair(baseline=one, candidate=one) for one in pairs)
    run.write_info(
        info.model_copy(
            update={
                "gate": GateConfig(family=family, looks=(10,)),
                "expansion": info.expansion.model_copy(update={"points": points}),
            }
        )
    )
    assert len(tests_of(run)) == count


@pytest.fixture
def said():
    """Returns what elements look like in a terminal."""

    def say(*elements, width=160):
        console = Console(file=io.StringIO(), width=width)
        print_document(Document(title="", elements=elements), console)
        return console.file.getvalue()

    return say


def aa(word="PASS", alpha=0.01):
    return AaTest(
        run_id="run",
        place="/aa/[red]",
        point="p[a=1]",
        word=word,
        alpha=alpha,
        operations=20,
        ratio=1.0,
    )


def test_a_rate_as_promised_is_told(said):
    text = said(*aa_elements([aa()] * 99 + [aa("REGRESSION")]))
    assert "1 of 100 A/A tests (1.0%) said REGRESSION where 1.0% may: nothing speaks" in text
    assert "REGRESSION in run run, p[a=1]: /aa/[red]" in text
    assert "99 PASS, 1 REGRESSION; at most 20 operations per arm" in text


def test_too_many_false_alarms_are_told(said):
    assert "that is too many" in said(*aa_elements([aa("REGRESSION")] * 5))


def test_runs_with_other_levels_are_counted_apart(said):
    text = said(*aa_elements([aa(alpha=0.05), aa(alpha=0.01)]))
    assert "where 1.0% may" in text
    assert "where 5.0% may" in text


def test_without_tests_it_says_how_to_make_some(said):
    assert "orbax-bench ab SUITE --output-directory DIR --aa" in said(*aa_elements([]))


@pytest.mark.parametrize("width", [80, 160])
def test_the_passport_tells_noise_and_what_it_lets_find(said, width):
    noise = Noise(
        operation="save_background",
        storage="ext4",
        cpu="EPYC",
        device="TPU v5e",
        size=2**26,
        sigma=0.05,
        n=80,
        series=2,
        repeat_s=3.0,
        points=(),
    )
    found = (noise, noise.model_copy(update={"operation": "load"}))
    lines = said(passport_table(Passport(made_at=MONDAY, noise=found)), width=width).splitlines()
    assert lines[1] == "ext4, EPYC, TPU v5e, 64 MiB to 256 MiB"
    assert [line.split()[0] for line in lines[2:]] == ["save_background", "load"]
    assert max(map(len, lines)) <= 80
    for cell in ("5 %", "80", "3 s", "11.5 %"):
        assert cell in lines[2]
