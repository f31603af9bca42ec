"""The sentence of a comparison, on records in which everything is known: it says what they show."""

import math
import random
import xml.etree.ElementTree as ElementTree

import pytest

from orbax_bench_core.config import BLOCK_SIZE, GateConfig
from orbax_bench_core.records import ErrorInfo
from orbax_bench_core.sweep import arrangement
from tests.support.paired_runs import make_separate_run  # noqa: F401 - a fixture

TIMES = {"save": 0.06, "load": 0.02}


@pytest.fixture
def compared(orbax_bench, make_run, make_record, make_point, tmp_path):
    """Compares two arms of a run; returns the output, and the message of each test of JUnit.

    `slower` gives the ratio of operations of the candidate, and `fails` the numbers of the attempts
    of an arm that fail. Without `noise` the times are exact.
    """

    def compare(operations, *, slower=None, fails=None, times=TIMES, noise=0.05):
        pair, draw, records = make_point(candidate=make_point()), random.Random(1), []
        numbers = {"baseline": iter(range(operations)), "candidate": iter(range(operations))}
        for repeat in range(2 * operations):
            block, slot = divmod(repeat, BLOCK_SIZE)
            arm = arrangement(pair.id, 1, block)[slot]
            failed = next(numbers[arm]) in (fails or {}).get(arm, ())
            ratios = (slower or {}) if arm == "candidate" else {}
            took = {
                name: seconds * ratios.get(name, 1.0) * math.exp(draw.gauss(0, noise))
                for name, seconds in times.items()
            }
            records.append(
                make_record(
                    pair,
                    repeat,
                    arm=arm,
                    block=block,
                    status="failed" if failed else "passed",
                    error=ErrorInfo(type="OSError", message="quota exceeded") if failed else None,
                    times={} if failed else took,
                )
            )
        run = make_run(records)
        info = run.read_info()
        run.write_info(info.model_copy(update={"gate": GateConfig(), "suite_file": "suite.yaml"}))
        done = orbax_bench("compare", run.root, "--junit", tmp_path / "junit.xml")
        tests = ElementTree.parse(tmp_path / "junit.xml").iter("testcase")
        messages = {test.get("name"): test[0].get("message") if len(test) else "" for test in tests}
        return " ".join(done.out.split()), messages

    return compare


def test_where_nothing_passed_the_headline_says_why(compared):
    said, messages = compared(2, fails={"baseline": range(2), "candidate": range(2)})
    why = "no attempt of either arm passed in the first block, so there is nothing to compare: "
    assert f"? INCONCLUSIVE: {why}OSError: quota exceeded" in said
    assert list(messages.values()) == [f"{why}OSError: quota exceeded"]


def test_a_baseline_that_fails_is_no_lack_of_time_and_no_change_of_the_medians(compared):
    said, _ = compared(10, fails={"baseline": (0, 1, 3, 5, 7, 8)})
    assert "✓ PASS: saves and loads are not slower" in said
    assert "limit_minutes" not in said
    headline = said.partition("PASS: ")[2].partition(" Next: ")[0]
    assert "→" not in headline  # medians are of what passed, and the ratio is of all
    assert "A failed attempt counts as ten times as slow as the slowest that passed" in said


@pytest.mark.parametrize("load", [0.9, 0.6])
def test_what_is_open_for_its_stalls_alone_is_not_slower(compared, load):
    said, messages = compared(10, slower={"save": 1.4, "load": load})
    assert "✗ REGRESSION: saves take" in said
    assert "loads are not slower by 15 % or more, but more stalls are not excluded" in said
    assert "nothing is shown" not in said
    # 26 % is the bound of none in 10, so of each of the two.
    assert "Stalls: none in 20 operations per side; of each kind up to 26 % may be unseen." in said
    assert "Failures: none in 10 attempts per side; up to 26 % may be unseen." in said
    not_excluded = "loads are not slower by 15 % or more, but more stalls are not excluded"
    assert messages["load"].startswith(f"INCONCLUSIVE: {not_excluded}")


def test_stalls_that_are_failures_are_called_so(compared):
    said, messages = compared(100, fails={"candidate": range(3, 100, 11)})
    assert "stall: 9 of 100 operations stalled (9 of them failed), 0 of the baseline" in said
    assert "9 of 100 operations stalled (9 of them failed)" in messages["save"]


def test_more_operations_do_not_help_values_that_have_no_ratio(compared):
    said, _ = compared(60, times={"save": 0.0, "load": 0.0})
    assert "? INCONCLUSIVE: saves were not judged: the value in block 0, slot 0 is 0" in said
    assert "--more" not in said
    assert "More operations would not do" in said


def test_runs_apart_have_no_interval_and_no_power(orbax_bench, make_separate_run, tmp_path):
    """It was "found 8 times in 10" by the limit itself, and "95 % interval: +59 %"."""
    registry, junit = tmp_path / "baselines", tmp_path / "junit.xml"
    for day in range(6):
        run = make_separate_run(day, sigma=0.05)
        assert orbax_bench("baseline", "capture", registry, run.root, "--promote").code == 0
    for day, seconds in ((6, 1.09), (7, 1.6)):
        run = make_separate_run(day, seconds, sigma=0.05)
        done = orbax_bench("compare", registry, run.root, "--details", "--junit", junit)
        said = " ".join(done.out.split())
        assert "times in 10" not in said
        assert "interval" not in junit.read_text()
        counts = "a slow-down counts from +18 % on, by how far past runs differ" in said
        assert ("✗ REGRESSION" in said, counts) == (seconds > 1.5, seconds < 1.5)
