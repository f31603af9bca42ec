from __future__ import annotations

import dataclasses

import pytest

from perf.pairing import Figure, alternate, spread

RATIO = Figure(
    name="f", unit="s", ours=(1.0, 4.0, 3.0), upstream=(4.0, 8.0, 4.0), target=0.5, limits="ratio"
)
VALUE = Figure(name="f", unit="s", ours=(0.9, 5.0, 1.0), target=1.0, limits="value")


def silent(_line: str) -> None:
    pass


def test_the_sides_take_turns_and_the_discarded_pair_comes_first() -> None:
    calls: list[str] = []
    alternate(2, lambda: calls.append("a"), lambda: calls.append("b"), say=silent)
    assert calls == ["a", "b", "a", "b", "a", "b"]


def test_the_discarded_pair_is_not_among_the_results() -> None:
    ours, upstream = iter([9, 1, 2]), iter([99, 10, 20])
    pairs = alternate(2, lambda: next(ours), lambda: next(upstream), say=silent)
    assert (pairs.ours, pairs.upstream) == ((1, 2), (10, 20))


def test_without_another_side_ours_is_measured_alone() -> None:
    pairs = alternate(3, lambda: 7, None, say=silent)
    assert (pairs.ours, pairs.upstream) == ((7, 7, 7), None)


def test_every_measurement_is_announced() -> None:
    lines: list[str] = []
    alternate(1, lambda: 0, lambda: 0, say=lines.append)
    assert lines == ["warm-up, ours", "warm-up, upstream", "1 of 1, ours", "1 of 1, upstream"]


def test_no_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="rounds is 0"):
        alternate(0, lambda: 0, None, say=silent)


def test_values_are_taken_from_both_sides() -> None:
    pairs = alternate(2, lambda: "ab", lambda: "abc", say=silent)
    assert pairs.values(len) == ((2, 2), (3, 3))


def test_values_without_another_side() -> None:
    assert alternate(1, lambda: "ab", None, say=silent).values(len) == ((2,), None)


def test_spread_gives_the_middle_and_the_ends() -> None:
    assert dataclasses.astuple(spread([3.0, 1.0, 2.0, 10.0])) == (2.5, 1.0, 10.0)


def test_ratios_are_taken_pair_by_pair() -> None:
    assert RATIO.ratios == (0.25, 0.5, 0.75)


def test_the_median_of_the_ratios_may_reach_the_target() -> None:
    assert RATIO.met is True


def test_a_median_ratio_above_the_target_misses_it() -> None:
    assert dataclasses.replace(RATIO, target=0.49).met is False


def test_the_median_of_ratios_is_judged_and_not_the_ratio_of_medians() -> None:
    figure = dataclasses.replace(RATIO, ours=(1.0, 10.0, 100.0), upstream=(10.0, 1.0, 1000.0))
    assert figure.met is True  # the medians alone are 10 to 10


def test_a_ratio_without_upstream_is_not_judged() -> None:
    assert dataclasses.replace(RATIO, upstream=None).met is None


def test_sides_of_different_length_are_not_paired() -> None:
    with pytest.raises(ValueError, match="shorter"):
        _ = dataclasses.replace(RATIO, upstream=(1.0, 2.0)).ratios


def test_a_value_is_judged_by_its_median() -> None:
    assert VALUE.met is True


def test_a_median_value_above_the_target_misses_it() -> None:
    assert dataclasses.replace(VALUE, target=0.95).met is False
