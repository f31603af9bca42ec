"""Looks: when the data are looked at, and the error that each look may spend."""

import math

import pytest

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.looks import Schedule

RULE = GateRule()


def test_looks_share_alpha_and_the_first_of_the_rule_has_a_quarter():
    shares = Schedule.of(RULE).shares
    levels = [25, 10.83, 21.67, 32.5, 5, 2.5, 2.5]
    assert [100 * share for share in shares] == pytest.approx(levels, abs=0.01)


def test_stalls_have_shares_of_their_own():
    shares = [0.01 * share for share in Schedule.of(RULE).stall_shares]
    assert shares == pytest.approx([0.0005, 0.001, 0.002, 0.002, 0.004, 0.00025, 0.00025])
    fewest = [math.ceil(-math.log2(share)) for share in shares]
    assert fewest == [11, 10, 9, 9, 8, 12, 12]


@pytest.mark.parametrize("looks", [(10,), (10, 20), (2, 4, 8, 16, 32)])
def test_all_looks_together_spend_alpha(looks):
    found = Schedule.of(GateRule(looks=looks))
    assert (sum(found.shares), sum(found.stall_shares)) == pytest.approx((1, 1))


@pytest.mark.parametrize(
    ("per_life", "looks"),
    [
        (1, (10, 20, 40, 60, 100, 168, 280)),
        (2, (16, 24, 40, 60, 100, 168, 280)),
        (3, (24, 36, 48, 72, 120, 204, 342)),
        (4, (32, 48, 64, 96, 160, 272, 456)),
    ],
)
def test_lives_have_default_looks_of_their_own(per_life, looks):
    assert Schedule.of(RULE, per_life).looks == looks


def test_looks_of_a_suite_are_whole_blocks_of_lives():
    found = Schedule.of(GateRule(looks=(10, 12, 30)), 2)
    assert found.looks == (12, 32, 56, 96, 160)
    assert [found.blocks(look) for look in range(3)] == [3, 8, 14]


def test_a_look_is_reached_with_its_last_block():
    found = Schedule.of(RULE)
    assert [found.reached(blocks) for blocks in (4, 5, 29, 30, 49, 50)] == [0, 1, 3, 4, 4, 5]
