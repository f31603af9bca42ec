"""All operations of a point, and what they say together, look by look."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from orbax_bench_core.analysis.verdicts import why
from orbax_bench_core.config import GateConfig, MetricRule
from orbax_bench_core.gate import (
    Verdict,
    false_discovery,
    judge,
    primary_operations,
    random_labels,
)
from orbax_bench_core.gate.looks import Schedule
from orbax_bench_core.reasons import because


def rules(**fields):
    """A gate that lets few operations pass."""
    return GateConfig(max_stalls=None, max_failures=None, **fields)


CONFIG = rules()


def verdicts(times, labels, config=CONFIG, **options):
    return judge(times, labels, config, **options).operations


def alone(times, labels):
    return verdicts({"save": times}, labels)["save"]


@pytest.fixture
def point(rng):
    """Builds times by operation and their labels: `point(10, save=1.2, load=1.0)`."""

    def build(blocks, sigma=0.02, **ratios):
        labels = random_labels(blocks, rng)
        return {
            name: np.exp(sigma * rng.standard_normal(labels.shape)) * np.where(labels, ratio, 1)
            for name, ratio in ratios.items()
        }, labels

    return build


def words(verdicts):
    return {name: verdict.word for name, verdict in verdicts.items()}


def test_every_operation_gets_its_verdict_in_its_place(point):
    found = verdicts(*point(30, other=1.5, load=1.0, save=1.5), config=CONFIG)
    assert list(found) == ["other", "load", "save"]
    assert words(found) == {"other": "REGRESSION", "load": "PASS", "save": "REGRESSION"}


def test_operations_that_share_nothing_are_judged_as_if_alone(point):
    times, labels = point(30, sigma=0.1, save=1.05, other=1.05)
    found = verdicts(times, labels)
    for name in ("save", "other"):  # a single one that decides, and one that decides nothing
        assert found[name] == alone(times[name], labels)


def test_primary_operations_share_alpha(point):
    config = rules(looks=(10,), tolerance=0.0)
    while True:
        times, labels = point(5, sigma=0.05, save=1.08, load=1.0, save_blocking=1.0)
        if 0.01 / 3 < verdicts({"save": times["save"]}, labels, config)["save"].p_regression < 0.01:
            break
    assert verdicts({"save": times["save"]}, labels, config)["save"].word == "REGRESSION"
    assert verdicts(times, labels, config)["save"].word != "REGRESSION"


def test_a_primary_operation_that_cannot_be_judged_keeps_its_share(point):
    config = rules(looks=(10,), tolerance=0.0)
    while True:
        times, labels = point(5, sigma=0.05, save=1.08)
        if 0.005 < verdicts(times, labels, config)["save"].p_regression < 0.01:
            break
    found = verdicts({**times, "load": np.zeros((5, 4))}, labels, config)
    assert found["save"].word != "REGRESSION"
    assert "block 0, slot 0 is 0" in why(found["load"].reason)


def test_operations_have_rules_of_their_own(point):
    config = rules(metrics={"save": MetricRule(tolerance=0.6, margin=0.9)})
    assert words(verdicts(*point(10, save=1.4, load=1.4), config=config)) == {
        "save": "PASS",
        "load": "REGRESSION",
    }


def test_the_direction_of_an_operation_can_be_given(point):
    times, labels = point(10, save=0.7)
    assert verdicts(times, labels, CONFIG, better={"save": "higher"})["save"].word == "REGRESSION"


def test_names_do_not_matter(point):
    times, labels = point(10, sigma=0.1, save=1.1, load=1.0)
    renamed = {"load": times["save"], "save": times["load"]}
    one, other = verdicts(times, labels, CONFIG), verdicts(renamed, labels, CONFIG)
    assert (one["save"], one["load"]) == (other["load"], other["save"])


def test_a_share_of_a_suites_alpha_is_smaller(point):
    times, labels = point(5, save=1.4)
    assert verdicts(times, labels, CONFIG)["save"].word == "REGRESSION"
    assert verdicts(times, labels, CONFIG, alpha_scale=0.01)["save"].word != "REGRESSION"


@pytest.mark.parametrize("scale", [0.0, -1.0, 1.5])
def test_a_share_that_is_none_is_refused(scale):
    with pytest.raises(ValueError, match="alpha_scale is"):
        judge({}, [], CONFIG, alpha_scale=scale)


def test_a_point_without_operations_has_no_verdicts():
    found = judge({}, np.zeros((0, 4), dtype=bool), CONFIG)
    decided = found.decision
    assert (decided.word, found.operations, decided.next_look) == ("INCONCLUSIVE", {}, 10)


@pytest.mark.parametrize(
    ("there", "config", "primary"),
    [
        pytest.param(["load", "other", "save"], CONFIG, ("save", "load"), id="what is there"),
        pytest.param(["d", "b", "c", "a"], CONFIG, ("d", "b", "c"), id="of one's own class"),
        pytest.param(["a", "b"], rules(primary=("c",)), (), id="no others than named"),
    ],
)
def test_primary_operations(there, config, primary):
    assert primary_operations(there, config) == primary


def test_false_discovery_is_benjamini_hochberg_on_what_the_looks_may_spend():
    p = {"a": 0.0004, "b": 0.02, "c": 0.0001, "d": 0.4}
    found = {
        name: Verdict(word="INCONCLUSIVE", look=index % 4, p_regression=value)
        for index, (name, value) in enumerate(p.items())
    }
    weighted = [
        min(1, value / share)
        for value, share in zip(p.values(), Schedule.of(CONFIG).shares, strict=False)
    ]
    expected = dict(zip(p, false_discovery_control(weighted), strict=True))
    config = rules(primary=("save",))
    assert false_discovery(found, config) == pytest.approx(expected)


def test_primary_operations_and_those_without_a_look_have_no_false_discovery():
    found = {
        "save": Verdict(word="REGRESSION", look=0, p_regression=0.0001),
        "other": Verdict(word="PASS", look=0, p_regression=0.9),
        "broken": Verdict(word="INCONCLUSIVE", reason=because("no_block")),
    }
    assert list(false_discovery(found, CONFIG)) == ["other"]


@pytest.mark.parametrize("blocks", [5, 10, 20, 30, 50])
def test_everything_that_is_said_is_of_all_that_was_measured(point, blocks):
    times, labels = point(blocks, sigma=0.1, save=1.0, load=1.0, other=1.0)
    found = judge(times, labels, GateConfig())
    operations = {verdict.operations for verdict in found.operations.values()}
    stalls = {verdict.stalls.operations for verdict in found.operations.values()}
    assert operations == stalls == {found.failures.attempts} == {2 * blocks}


@pytest.mark.parametrize("late", [5, 10, 20, 30])
def test_a_slow_down_that_begins_late_is_in_the_word(point, late):
    times, labels = point(50, save=1.0)
    times["save"][late:] *= np.where(labels[late:], 1.5, 1.0)
    found = judge(times, labels, CONFIG)
    assert found.decision.word == "REGRESSION"
    assert found.operations["save"].operations > 2 * late


def test_a_regression_ends_a_comparison_and_all_numbers_are_up_to_it(point):
    times, labels = point(30, save=1.5, load=1.0, other=1.0)
    whole = judge(times, labels, CONFIG)
    assert {verdict.operations for verdict in whole.operations.values()} == {10}
    assert whole == judge({n: t[:5] for n, t in times.items()}, labels[:5], CONFIG)


def test_what_passed_at_a_look_is_no_pass_while_more_was_measured(point):
    times, labels = point(7, save=1.0)
    found = judge(times, labels, CONFIG).decision
    assert (found.word, found.settled, found.next_look) == ("INCONCLUSIVE", False, 20)
    assert why(found.reason) == "14 operations per arm were measured; the next look is at 20"


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ({"save": 1.0, "load": 1.0}, "PASS"),
        ({"save": 1.0, "load": 1.5}, "REGRESSION"),
        ({"save": 1.0, "other": 1.5}, "PASS"),
        ({"mine": 1.5, "other": 1.0}, "REGRESSION"),
        ({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.5}, "PASS"),
    ],
)
def test_any_primary_regression_is_one_and_only_all_passes_are_one(point, ratios, word):
    found = judge(*point(5, **ratios), CONFIG).decision
    assert (found.word, found.endpoint, found.settled) == (word, "time", True)
    assert found.next_look is None


def test_no_verdict_goes_on_to_the_next_look_until_they_are_used_up(point):
    found = judge(*point(5, sigma=0.5, save=1.0, load=1.08), CONFIG).decision
    assert (found.word, found.settled, found.next_look) == ("INCONCLUSIVE", False, 20)
    found = judge(*point(30, sigma=0.5, save=1.08), CONFIG).decision
    assert (found.word, found.endpoint, found.settled) == ("INCONCLUSIVE", "time", True)


def test_between_looks_the_verdict_is_that_of_the_look(point):
    times, labels = point(9, sigma=0.3, save=1.08)
    assert alone(times["save"], labels) == alone(times["save"][:5], labels[:5])
    assert judge(times, labels, CONFIG).decision.next_look == 20


def test_before_the_first_look_it_is_too_early(point):
    found = judge(*point(4, save=2.0), CONFIG)
    verdict = found.operations["save"]
    assert why(verdict.reason) == "too early: 8 operations per arm, and the first look is at 10"
    assert (verdict.word, verdict.look, verdict.low, verdict.more_blocks) == (
        "INCONCLUSIVE",
        None,
        None,
        1,
    )
    assert (found.decision.word, found.decision.next_look) == ("INCONCLUSIVE", 10)


def test_a_clear_verdict_is_told_in_full(point):
    times, labels = point(30, save=1.3)
    found = alone(times["save"], labels)
    assert (found.word, found.look, found.operations, found.lives) == ("REGRESSION", 0, 10, 0)
    assert (found.time_word, found.bound, found.more_blocks) == ("REGRESSION", "ratio", 0)
    assert 1.03 < found.low < found.ratio < found.high
    assert 0.03 < found.detectable_80 < found.detectable < 0.3
    assert found.stalls.word == "PASS"


@pytest.mark.parametrize("times", [None, {}, object(), [[1, 2, 3, 0]] * 5])
def test_bad_input_is_inconclusive_with_a_reason(times):
    found = verdicts({"save": times}, [[True, True, False, False]] * 5)["save"]
    assert (found.word, found.ratio) == ("INCONCLUSIVE", None)
    assert found.reason


def test_a_primary_operation_that_one_arm_lacks_is_never_dropped(point):
    times, labels = point(5, save=1.0, load=1.0)
    times["load"][labels] = np.nan
    found = judge(times, labels, CONFIG).decision
    assert (found.word, found.endpoint, found.settled) == ("INCONCLUSIVE", "missing", True)
    assert why(found.reason) == "load: the candidate lacks it in 10 of 10 repeats, first in block 0"


@pytest.mark.parametrize(("ratio", "word"), [(1.0, "INCONCLUSIVE"), (1.5, "REGRESSION")])
def test_one_repeat_without_a_primary_operation_is_enough_and_hides_no_regression(
    point, ratio, word
):
    times, labels = point(5, save=ratio, load=1.0)
    times["load"][3, 2] = np.nan
    assert judge(times, labels, CONFIG).decision.word == word


def test_what_a_failed_attempt_lacks_is_not_missing(point):
    times, labels = point(5, save=1.0, load=1.0)
    slot = tuple(np.argwhere(labels)[0])
    failed = np.zeros(labels.shape, dtype=bool)
    failed[slot] = True
    times["load"][slot] = np.nan
    found = judge(times, labels, CONFIG, failed=failed).decision
    assert found.endpoint == "failures"
    assert (found.word, found.next_look) == ("INCONCLUSIVE", 20)


def test_a_candidate_that_hangs_in_a_third_of_its_attempts_regresses(point):
    times, labels = point(50, save=1.0)
    attempts = np.argwhere(labels)[::3]
    times["save"][tuple(attempts.T)] = np.inf
    found = judge(times, labels, CONFIG).decision
    assert (found.word, found.settled) == ("REGRESSION", True)
    assert found.endpoint in ("failures", "stalls")


def test_stalls_that_are_failures_are_told_apart(point):
    times, labels = point(5, save=1.0)
    times["save"][tuple(np.argwhere(labels)[0])] = np.inf
    assert "stalled (1 of them failed), and" in why(alone(times["save"], labels).stalls.reason)


def test_a_candidate_that_never_works_has_regressed(point):
    times, labels = point(5, save=1.0)
    times["save"][labels] = np.inf
    found = judge(times, labels, CONFIG)
    decided = found.decision
    assert (decided.word, decided.endpoint, decided.settled) == ("REGRESSION", "failures", True)
    assert (found.operations["save"].ratio, found.failures.candidate) == (None, 10)


def test_a_baseline_that_never_works_is_nothing_to_compare_with(point):
    times, labels = point(30, save=1.0)
    times["save"][~labels] = np.inf
    assert judge(times, labels, CONFIG).decision.word == "INCONCLUSIVE"


def test_a_baseline_that_did_not_work_until_a_look_is_not_slower(point):
    times, labels = point(10, save=1.0)
    times["save"][:5][~labels[:5]] = np.inf
    found = judge({"save": times["save"][:10]}, labels, CONFIG)
    assert found.operations["save"].look == 1


def test_a_first_block_in_which_nothing_works_ends_it(point):
    times, labels = point(1, save=1.0)
    found = judge(times, labels, CONFIG, failed=np.ones((1, 4), dtype=bool)).decision
    assert (found.word, found.endpoint, found.settled) == ("INCONCLUSIVE", "failures", True)
    assert why(found.reason).startswith("every attempt of both arms failed in the first block")


def test_stalls_of_the_candidate_keep_it_from_passing(point):
    times, labels = point(5, save=1.0)
    times["save"][tuple(np.argwhere(labels)[0])] *= 4
    found = judge(times, labels, CONFIG)
    verdict = found.operations["save"]
    decided = found.decision
    assert (decided.word, decided.endpoint, decided.next_look) == ("INCONCLUSIVE", "stalls", 20)
    assert (verdict.time_word, verdict.settled) == ("PASS", False)


def test_stalls_that_no_look_clears_are_a_regression(point):
    times, labels = point(50, save=1.0)
    times["save"][tuple(np.argwhere(labels)[::3].T)] *= 4
    found = judge(times, labels, CONFIG).decision
    assert (found.word, found.endpoint) == ("REGRESSION", "stalls")
    assert why(found.reason).startswith("save: ")


def test_after_the_looks_at_times_stalls_have_one_more(point):
    times, labels = point(30, save=1.0)
    times["save"][tuple(np.argwhere(labels)[[0, 20, 40]].T)] *= 4
    assert judge(times, labels, CONFIG).decision.next_look == 100


def test_stalls_share_alpha_among_the_primary_operations(point):
    times, labels = point(50, save=1.0, load=1.0, save_blocking=1.0)
    times["save"][tuple(np.argwhere(labels)[::10].T)] *= 4
    single = verdicts({"save": times["save"]}, labels)["save"].stalls
    shared = verdicts(times, labels)["save"].stalls
    assert (single.word, shared.operations) == ("REGRESSION", 100)
    assert single.p_value > 0.01 / 3 * 0.25


def test_lives_are_counted_and_have_looks_of_their_own(paired):
    times, labels = paired(4, per_life=2, ratio=1.3)
    found = judge({"save": times}, labels, CONFIG)
    verdict = found.operations["save"]
    assert (found.decision.word, verdict.operations, verdict.lives) == ("REGRESSION", 16, 8)
    assert judge({"save": times[:3]}, labels[:3], CONFIG).operations["save"].look is None
    times, labels = paired(4, per_life=2, ratio=1.08, sigma=0.5)
    assert judge({"save": times}, labels, CONFIG).decision.next_look == 24


def test_a_candidate_is_faster_only_where_no_ratio_of_one_is_left(point):
    found = verdicts(*point(5, save=0.8, load=0.995), config=CONFIG)
    assert (found["save"].faster, found["load"].faster) == (True, False)
    assert found["save"].word == found["load"].word == "PASS"


def test_the_bound_that_decided_is_told(point):
    times, labels = point(5, save=1.1)
    config = rules(min_effect_s=0.3)
    found = verdicts(times, labels, config)["save"]
    assert (found.word, found.bound) == ("PASS", "floor")
    quick = verdicts({"save": 100 * times["save"]}, labels, config)["save"]
    assert quick.bound == "ratio"


def test_seconds_that_do_not_matter_are_nothing_to_a_rate(point):
    times, labels = point(5, save=0.5)
    config = rules(min_effect_s=10.0)
    assert verdicts(times, labels, config, better={"save": "higher"})["save"].word == "REGRESSION"


def test_throughput_that_falls_is_judged_as_the_time_behind_it(point):
    times, labels = point(10, save=1.05, sigma=0.2)
    rate = verdicts({"save": 1 / times["save"]}, labels, better={"save": "higher"})["save"]
    time = alone(times["save"], labels)
    judged = [each.model_dump(exclude={"stalls", "reason"}) for each in (rate, time)]
    assert judged[0] == pytest.approx(judged[1])


@pytest.mark.parametrize("unit", [1e-6, 1024.0])
def test_the_unit_of_time_changes_nothing(point, unit):
    times, labels = point(10, sigma=0.2, save=1.1)
    one, other = alone(unit * times["save"], labels), alone(times["save"], labels)
    assert (one.word, one.look) == (other.word, other.look)
    assert (one.ratio, one.low, one.high) == pytest.approx((other.ratio, other.low, other.high))


def test_the_order_of_slots_changes_nothing_but_after_what_each_came(point, rng):
    times, labels = point(10, sigma=0.2, save=1.1)
    order = rng.random(labels.shape).argsort(axis=1)
    moved = [np.take_along_axis(table, order, axis=1) for table in (times["save"], labels)]
    one, other = alone(*moved), alone(times["save"], labels)
    assert (one.ratio, one.p_regression) == (other.ratio, other.p_regression)


def test_verdicts_of_version_1_are_read():
    stored = Verdict(word="PASS", ratio=1.0, look=0, settled=True).model_dump(
        include={"word", "reason", "ratio", "look", "settled"}
    )
    found = Verdict.model_validate(stored)
    assert (found.stalls, found.endpoint, found.time_word) == (None, "time", None)


@pytest.mark.parametrize(
    ("seconds", "minutes", "operations"),
    [
        pytest.param(0.1, 30, 40, id="quick operations"),
        pytest.param(5.0, 30, 40, id="slow operations within the minutes"),
        pytest.param(30.0, 30, 20, id="only the second look is"),
        pytest.param(300.0, 30, 10, id="no other look is"),
        pytest.param(300.0, 600, 40, id="more minutes"),
        pytest.param(0.1, 0, 10, id="no minutes"),
    ],
)
def test_a_pass_excludes_a_tenth_of_stalls_and_failures_for_as_far_as_the_minutes_reach(
    point, seconds, minutes, operations
):
    times, labels = point(30, save=1.0)
    config, found = GateConfig(limit_minutes=minutes), None
    while found is None or found.decision.next_look:
        blocks = (found.decision.next_look if found else 10) // 2
        found = judge({"save": seconds * times["save"][:blocks]}, labels[:blocks], config)
    assert (found.decision.word, found.failures.attempts) == ("PASS", operations)


def test_minutes_are_those_of_all_that_a_repeat_takes(point):
    times, labels = point(5, save=1.0)
    assert judge(times, labels, GateConfig(), repeat_s=300.0).decision.word == "PASS"
    assert judge(times, labels, GateConfig()).decision.next_look == 20
