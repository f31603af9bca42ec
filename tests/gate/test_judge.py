"""All operations of a point, and what they say together."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from orbax_bench_core.config import GateConfig, MetricRule
from orbax_bench_core.gate import (
    decide,
    false_discovery,
    judge,
    point_settled,
    point_word,
    primary_operations,
    random_labels,
)
from orbax_bench_core.gate.verdict import Verdict

CONFIG = GateConfig()
PASS = Verdict(word="PASS", settled=True, look=0, p_regression=0.9)
REGRESSION = Verdict(word="REGRESSION", settled=True, look=0, p_regression=0.0001)
UNCLEAR = Verdict(word="INCONCLUSIVE", look=1, p_regression=0.3)
EXHAUSTED = Verdict(word="INCONCLUSIVE", look=3, p_regression=0.3)
BROKEN = Verdict(word="INCONCLUSIVE", reason="no times")


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
    found = judge(*point(30, other=1.5, load=1.0, save=1.5), CONFIG)
    assert list(found) == ["other", "load", "save"]
    assert words(found) == {"other": "REGRESSION", "load": "PASS", "save": "REGRESSION"}


def test_a_single_primary_operation_is_judged_as_if_alone(point):
    times, labels = point(30, sigma=0.1, save=1.05)
    assert judge(times, labels, CONFIG)["save"] == decide(times["save"], labels)


def test_operations_that_decide_nothing_are_judged_as_if_alone(point):
    times, labels = point(30, sigma=0.1, save=1.0, other=1.05)
    assert judge(times, labels, CONFIG)["other"] == decide(times["other"], labels)


def test_primary_operations_share_alpha(point):
    config = GateConfig(looks=(10,), tolerance=0.0)
    while True:
        times, labels = point(5, sigma=0.05, save=1.08, load=1.0, save_blocking=1.0)
        if 0.01 / 3 < judge({"save": times["save"]}, labels, config)["save"].p_regression < 0.01:
            break
    assert judge({"save": times["save"]}, labels, config)["save"].word == "REGRESSION"
    assert judge(times, labels, config)["save"].word != "REGRESSION"


def test_a_primary_operation_that_cannot_be_judged_keeps_its_share(point):
    config = GateConfig(looks=(10,), tolerance=0.0)
    while True:
        times, labels = point(5, sigma=0.05, save=1.08)
        if 0.005 < judge(times, labels, config)["save"].p_regression < 0.01:
            break
    found = judge({**times, "load": np.zeros((5, 4))}, labels, config)
    assert found["save"].word != "REGRESSION"
    assert "block 0, slot 0 is 0" in found["load"].reason


def test_operations_have_rules_of_their_own(point):
    config = GateConfig(metrics={"save": MetricRule(tolerance=0.6, margin=0.9)})
    assert words(judge(*point(10, save=1.4, load=1.4), config)) == {
        "save": "PASS",
        "load": "REGRESSION",
    }


def test_the_direction_of_an_operation_can_be_given(point):
    times, labels = point(10, save=0.7)
    assert judge(times, labels, CONFIG, better={"save": "higher"})["save"].word == "REGRESSION"


def test_names_do_not_matter(point):
    times, labels = point(10, sigma=0.1, save=1.1, load=1.0)
    renamed = {"load": times["save"], "save": times["load"]}
    one, other = judge(times, labels, CONFIG), judge(renamed, labels, CONFIG)
    assert (one["save"], one["load"]) == (other["load"], other["save"])


def test_a_share_of_a_suites_alpha_is_smaller(point):
    times, labels = point(5, save=1.4)
    assert judge(times, labels, CONFIG)["save"].word == "REGRESSION"
    assert judge(times, labels, CONFIG, alpha_scale=0.01)["save"].word != "REGRESSION"


@pytest.mark.parametrize("scale", [0.0, -1.0, 1.5])
def test_a_share_that_is_none_is_refused(scale):
    with pytest.raises(ValueError, match="alpha_scale is"):
        judge({}, [], CONFIG, alpha_scale=scale)


def test_a_point_without_operations_has_no_verdicts():
    assert judge({}, [], CONFIG) == {}


def test_primary_operations_that_a_point_lacks_are_left_out():
    assert primary_operations(["load", "other", "save"], CONFIG) == ("save", "load")


@pytest.mark.parametrize(
    ("found", "word"),
    [
        ({"save": PASS, "load": PASS}, "PASS"),
        ({"save": PASS, "load": REGRESSION}, "REGRESSION"),
        ({"save": UNCLEAR, "load": REGRESSION}, "REGRESSION"),
        ({"save": PASS, "load": UNCLEAR}, "INCONCLUSIVE"),
        ({"save": PASS, "load": BROKEN}, "INCONCLUSIVE"),
        ({"save": PASS, "other": REGRESSION}, "PASS"),
        ({"other": REGRESSION}, "INCONCLUSIVE"),
        ({}, "INCONCLUSIVE"),
    ],
)
def test_any_regression_is_one_and_only_all_passes_are_one(found, word):
    assert point_word(found, CONFIG) == word


@pytest.mark.parametrize(
    ("found", "settled"),
    [
        ({"save": PASS, "load": PASS}, True),
        ({"save": UNCLEAR, "load": REGRESSION}, True),
        ({"save": PASS, "load": UNCLEAR}, False),
        ({"save": PASS, "load": EXHAUSTED}, True),
        ({"save": PASS, "load": BROKEN}, False),
        ({"save": PASS, "other": UNCLEAR}, True),
        ({"other": UNCLEAR}, False),
        ({"other": EXHAUSTED}, True),
        ({}, False),
    ],
)
def test_a_point_is_settled_when_more_blocks_change_nothing(found, settled):
    assert point_settled(found, CONFIG) is settled


def test_false_discovery_is_benjamini_hochberg_on_what_the_looks_may_spend():
    p = {"a": 0.0004, "b": 0.02, "c": 0.0001, "d": 0.4}
    found = {
        name: Verdict(word="INCONCLUSIVE", look=index % 4, p_regression=value)
        for index, (name, value) in enumerate(p.items())
    }
    weighted = [
        min(1, value / share) for value, share in zip(p.values(), (0.1, 0.2, 0.3, 0.4), strict=True)
    ]
    expected = dict(zip(p, false_discovery_control(weighted), strict=True))
    assert false_discovery(found, CONFIG) == pytest.approx(expected)


def test_primary_operations_and_those_without_a_look_have_no_false_discovery():
    found = {"save": REGRESSION, "other": PASS, "broken": BROKEN}
    assert list(false_discovery(found, CONFIG)) == ["other"]


def test_a_live_run_stops_where_a_look_back_does(point):
    times, labels = point(30, sigma=0.15, save=1.1, load=1.0)
    whole = judge(times, labels, CONFIG)
    for blocks in (5, 10, 20, 30):
        so_far = judge({n: t[:blocks] for n, t in times.items()}, labels[:blocks], CONFIG)
        if so_far["load"].settled:
            break
    assert so_far["load"] == whole["load"]
