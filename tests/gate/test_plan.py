"""Plan of a comparison, before it starts."""

import pytest

from orbax_bench_core.config import GateConfig, GateRule, MetricRule
from orbax_bench_core.gate import plan_operations
from orbax_bench_core.gate.plan import plan


def test_noisier_times_take_longer():
    found = [plan(sigma).operations for sigma in (0.05, 0.15, 0.5)]
    assert found == sorted(found)
    assert found[0] < 15
    assert found[-1] > 40


def test_a_ratio_in_between_takes_longest():
    assert plan(0.1, true_ratio=1.09).operations > plan(0.1).operations


def test_the_chance_of_a_verdict_grows_from_look_to_look():
    found = plan(0.2)
    assert list(found.by_look) == sorted(found.by_look)
    assert found.verdict == found.by_look[-1]


def test_a_plan_is_the_same_every_time():
    assert plan(0.1) == plan(0.1)


def test_operations_are_planned_by_their_own_rules():
    config = GateConfig(metrics={"load": MetricRule(margin=1.0)})
    found = plan_operations({"save": 0.3, "load": 0.3}, config)
    assert found["load"].operations < found["save"].operations


def test_a_config_is_a_rule():
    assert plan(0.1, GateConfig()) == plan(0.1, GateRule())


@pytest.mark.parametrize(("design", "operations"), [({}, 10), ({"per_life": 2, "tau": 0.02}, 16)])
def test_quiet_times_are_settled_at_the_first_look(design, operations):
    assert plan(0.02, **design).operations == pytest.approx(operations, abs=0.1)


def test_offsets_of_lives_take_longer():
    assert plan(0.1, per_life=2, tau=0.1).operations > plan(0.1, per_life=2).operations


def test_both_detectable_slow_downs_are_told():
    found = plan(0.2)
    assert (found.detectable_80, found.detectable) == pytest.approx((0.182, 0.204), abs=0.001)


@pytest.mark.parametrize("sigma", [-0.1, float("nan"), float("inf")])
def test_sigma_must_be_a_standard_deviation(sigma):
    with pytest.raises(ValueError, match="sigma is"):
        plan(sigma)


@pytest.mark.parametrize("ratio", [0.0, -1.0, float("nan")])
def test_the_ratio_must_be_positive(ratio):
    with pytest.raises(ValueError, match="true_ratio is"):
        plan(0.1, true_ratio=ratio)
