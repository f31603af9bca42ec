"""Advice about a verdict."""

import pytest

from orbax_bench_core.analysis.verdicts import going_on
from orbax_bench_core.analysis.verdicts.advice import advice
from orbax_bench_core.config import GateConfig
from orbax_bench_core.gate import SeriesHealth, Verdict
from tests.support.verdicts import build_operation, build_point

GATE = GateConfig(metrics={"load": {"margin": 0.2}})


def verdict(word, **fields):
    return Verdict(word=word, **{"operations": 20, "look": 1, **fields})


def open_verdict(**fields):
    given = {"operations": 60, "look": 3, "settled": True, "detectable": 0.2, "more_blocks": 20}
    given |= {"detectable_80": 0.18, "time_word": "INCONCLUSIVE", **fields}
    return verdict("INCONCLUSIVE", **given)


def series(**fields):
    return SeriesHealth(n=20, median=1.0, **fields)


@pytest.mark.parametrize("family", ["point", "suite"])
def test_a_regression_says_how_often_one_is_false(family):
    said = advice(verdict("REGRESSION"), "save", GateConfig(alpha=0.004, family=family))
    of = {"point": "points", "suite": "runs"}[family]
    assert said == (
        f"Look at what differs between the arms. Where nothing differs, at most 1 % of such {of} "
        "end in REGRESSION: 0.4 % by times, 0.4 % by stalls, 0.2 % by failures."
    )


def test_a_regression_that_decides_nothing_asks_to_be_made_primary():
    said = advice(verdict("REGRESSION"), "metadata", GATE, primary=False)
    assert said == "Decides nothing: if it matters, name it in `gate.primary` and run again."


def test_an_unpaired_regression_is_only_a_warning():
    said = advice(verdict("REGRESSION"), "save", GATE, paired=False)
    assert said.startswith("Only a warning")
    assert "`orbax-bench ab`" in said


@pytest.mark.parametrize(("operation", "margin"), [("save", "15 %"), ("load", "20 %")])
def test_a_pass_states_the_margin_of_its_operation(operation, margin):
    said = advice(verdict("PASS", ratio=1.0, low=0.98, high=1.02), operation, GATE)
    assert said == f"A slow-down of {margin} or more is ruled out."


def test_faster_is_said_only_where_it_was_shown():
    fields = {"ratio": 0.9, "low": 0.85, "high": 0.95}
    assert advice(verdict("PASS", faster=True, **fields), "save", GATE).endswith(
        "The candidate is faster."
    )
    assert advice(verdict("PASS", **fields), "save", GATE).endswith("It is not slower.")


def test_a_floor_that_decided_is_told_with_what_it_lets_pass():
    gate = GateConfig(min_effect_s=0.002)
    said = advice(verdict("PASS", bound="floor"), "save", gate)
    assert "A slow-down of 2 ms or more is ruled out" in said
    assert "one below 2 ms does not count here, though it may be more than 15 %" in said
    said = advice(verdict("REGRESSION", bound="floor"), "save", gate)
    assert "slower by more than 2 ms: a slow-down below that does not count here" in said


def test_a_share_that_decided_says_nothing_of_the_floor():
    gate = GateConfig(min_effect_s=0.002)
    assert "2 ms" not in advice(verdict("PASS"), "save", gate)
    assert "2 ms" not in advice(verdict("REGRESSION"), "save", gate)


def test_stalls_are_to_be_looked_at():
    said = advice(verdict("REGRESSION", endpoint="stalls", time_word="PASS"), "save", GATE)
    assert said.startswith("Look at the operations that stall, which the figure marks")
    assert "The typical time says PASS." in said


@pytest.mark.parametrize(
    ("settled", "said"),
    [
        (False, "Run the same command again: stalls"),
        (True, "Chance is not ruled out: run the same command with `--more`"),
    ],
)
def test_suspected_stalls_are_followed_up(settled, said):
    found = verdict("INCONCLUSIVE", endpoint="stalls", settled=settled)
    assert advice(found, "save", GATE).startswith(said)


def test_an_operation_that_an_arm_lacks_is_not_measured_again():
    found = verdict("INCONCLUSIVE", endpoint="missing", reason="the candidate lacks it")
    said = advice(found, "load", GATE)
    assert "leave it out of `gate.primary`" in said
    assert "same command" not in said


def test_lives_go_on_to_their_own_last_look():
    found = open_verdict(operations=24, lives=12, detectable=None, settled=False)
    gate = GateConfig(looks=(10, 30))
    assert "to 32 operations per arm" in advice(found, "save", gate)


def test_a_pass_that_is_likely_slower_says_by_how_much():
    said = advice(verdict("PASS", ratio=1.06, low=1.02, high=1.1), "save", GATE)
    assert "One of about 6 % is likely; if that matters, lower `gate.margin`." in said


def test_no_verdict_at_the_last_look_says_what_it_takes():
    assert advice(open_verdict(), "save", GATE) == (
        "With 60 operations per arm a slow-down is found 8 times in 10: +18 %; 9 in 10: +20 %. Run "
        "the same command with `--more`: to 100 operations per arm, which probably gives a verdict."
    )


@pytest.mark.parametrize(("lives", "blocks"), [(0, 54), (30, 27)])
def test_a_look_that_would_hardly_do_is_passed_over(lives, blocks):
    said = advice(open_verdict(more_blocks=blocks, lives=lives), "save", GATE)
    assert "with `--more 108`: to 168 operations per arm" in said


def test_where_no_look_is_left_it_says_what_helps():
    said = advice(open_verdict(operations=280, more_blocks=None), "save", GATE)
    assert "The looks of `--more` are used up: make the operation longer" in said


def open_point(*more_blocks, endpoint="time", settled=True, health=None, **fields):
    """A point of operations that each need so many more blocks."""
    words = {"time_word": "INCONCLUSIVE" if endpoint == "time" else "PASS", "endpoint": endpoint}
    operations = [
        build_operation(
            f"save{number}",
            "INCONCLUSIVE",
            blocks=30,
            verdict={"settled": settled, "more_blocks": blocks, **words},
            **({} if health is None else {"health": health}),
        )
        for number, blocks in enumerate(more_blocks)
    ]
    return build_point("p", *operations, endpoint=endpoint, settled=settled, **fields)


@pytest.mark.parametrize(
    ("point", "why", "flag"),
    [
        (open_point(20), "more", "--more"),
        (open_point(20, 54), "more", "--more 108"),
        (open_point(20, None), "unlikely", ""),
        (open_point(None, endpoint="stalls"), "more", "--more"),
        (open_point(20, endpoint="missing"), "no_use", ""),
        (open_point(20, endpoint="storage"), "no_use", ""),
        (open_point(20, failed=True), "no_use", ""),
        (open_point(20, settled=False), "unfinished", ""),
        (open_point(20, mode="unpaired"), "unpaired", ""),
        (build_point(), "decided", ""),
    ],
)
def test_it_says_whether_more_would_help_and_how_much(point, why, flag):
    found = going_on(point, GATE)
    assert (found.why, found.flag) == (why, flag)
    assert (found.until > 60) == (why == "more")


def test_it_tells_which_arm_drifts():
    health = {"baseline": series(drift=0.29, drift_p=0.0001), "candidate": series(drift=0.01)}
    assert going_on(open_point(None, health=health), GATE).drifts == {"baseline": 0.29}


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ("baseline", "The machine is busy: baseline drifts by +29 %. What helps: make the op"),
        ("candidate", "Seek the cause first: candidate drifts by +29 %. What helps: make the op"),
    ],
)
def test_where_more_would_not_do_a_busy_machine_is_named(arm, said):
    health = {arm: series(drift=0.29, drift_p=0.0001)}
    found = advice(open_verdict(more_blocks=None), "save", GATE, health=health)
    assert f"More operations would not do. {said}" in found


@pytest.mark.parametrize(
    ("detectable", "written"),
    [(0.386, "39 %"), (1.234, "123 %"), (0.0432, "4 %"), (0.004, "0.4 %")],
)
def test_what_is_estimated_has_few_digits(detectable, written):
    said = advice(open_verdict(detectable=detectable), "save", GATE)
    assert f"; 9 in 10: +{written}. " in said


def test_more_blocks_than_anyone_would_run_become_advice_that_helps():
    found = open_verdict(more_blocks=None, detectable=None)
    short = {"baseline": SeriesHealth(n=20, median=0.02)}
    assert advice(found, "load", GateConfig(), health=short) == (
        "More operations would not do: make the operation longer, with larger data, measure in a "
        "quieter place, set `gate.min_effect_s` if 3 ms (15 % of it) do not matter, or take load "
        "out of `gate.primary`."
    )


def test_a_floor_is_not_advised_where_the_margin_is_long():
    found, long = open_verdict(more_blocks=None), {"baseline": SeriesHealth(n=20, median=9.0)}
    assert "min_effect_s" not in advice(found, "save", GATE, health=long)


def test_an_operation_whose_point_is_settled_does_not_ask_for_more():
    said = advice(open_verdict(settled=False), "save", GATE, ended=True)
    assert said == "Its point was settled before it was: see to what decided that first."


def test_the_last_look_of_a_settled_point_still_says_what_it_takes():
    assert "`--more`" in advice(open_verdict(), "save", GATE, ended=True)


def test_no_verdict_names_drift_and_regimes_of_the_arms():
    health = {
        "baseline": series(drift=-0.1, drift_p=0.0001),
        "candidate": series(regimes=True, regime_ratio=1.4),
    }
    said = advice(open_verdict(), "save", GATE, health=health)
    assert said.endswith(
        "Seek the cause first: baseline drifts by -10 %; candidate has two regimes, 1.4x apart."
    )


def test_a_verdict_does_not_depend_on_health():
    health = {"baseline": series(regimes=True)}
    steady = advice(verdict("PASS"), "save", GATE)
    assert advice(verdict("PASS"), "save", GATE, health=health) == steady


def test_a_failed_arm_is_to_be_repaired():
    said = advice(verdict("INCONCLUSIVE", reason="no loads"), "save", GATE, failed=True)
    assert said == (
        "Repair the arm that failed (no loads), then run again in another output directory."
    )


def test_a_regression_stands_though_an_arm_failed_later():
    said = advice(verdict("REGRESSION"), "save", GATE, failed=True)
    assert said.startswith("Look at what differs")


@pytest.mark.parametrize("given", ["REGRESSION", "PASS", "INCONCLUSIVE"])
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("failed", [True, False])
def test_advice_is_one_line(given, paired, failed):
    said = advice(verdict(given), "save", GATE, paired=paired, failed=failed)
    assert said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("drift", "p_value", "clear"),
    [(0.15, 0.001, True), (-0.15, 0.001, True), (0.15, 0.2, False), (0.01, 0.001, False)],
)
def test_a_drift_is_one_that_is_clear_and_large(drift, p_value, clear):
    assert series(drift=drift, drift_p=p_value).drifts is clear


def test_a_series_without_a_test_does_not_drift():
    assert not series().drifts


def test_health_flags_the_drifts_that_advice_speaks_of():
    from orbax_bench_core.gate.health import health

    for times in ([1 + 0.02 * i for i in range(20)], [1 + 0.001 * i for i in range(20)]):
        found = health(times)
        assert found.drifts == any(flag.startswith("drifts") for flag in found.flags)


def test_a_likely_slow_down_below_the_floor_names_the_floor():
    found = verdict("PASS", bound="floor", ratio=1.19, low=1.12, high=1.2)
    assert "lower `gate.min_effect_s`" in advice(found, "save", GateConfig(min_effect_s=0.008))
