"""Intervals against brute force and tables."""

import itertools
import random
import statistics

import pytest

from orbax_bench_core.analysis.async_study.study import ratio_of, seconds_of
from orbax_bench_core.gate import arrangements


@pytest.mark.parametrize(
    ("n", "low", "coverage"),
    [
        (1, 1, 0),
        (2, 1, 0.5),
        (3, 1, 0.75),
        (5, 1, 0.9375),
        (6, 1, 0.96875),
        (9, 2, 0.9609375),
        (12, 3, 0.9614),
    ],
)
def test_the_interval_of_a_median_is_between_order_statistics(n, low, coverage):
    found = seconds_of(random.Random(n).sample(range(1, n + 1), n))
    assert (found.n, found.low, found.high) == (n, low, n + 1 - low)
    assert found.coverage == pytest.approx(coverage, abs=1e-4)


@pytest.mark.slow
def test_the_interval_holds_the_median_as_often_as_it_says():
    draw = random.Random(0)
    samples = [seconds_of([draw.expovariate(1) for _ in range(7)]) for _ in range(4000)]
    held = sum(one.low <= 0.6931 <= one.high for one in samples) / len(samples)
    assert held == pytest.approx(samples[0].coverage, abs=0.01)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 5), (4, 3), (5, 5)])
def test_arrangements_are_those_of_brute_force(m, n):
    counts = [0] * (m * n + 1)
    for chosen in itertools.combinations(range(m + n), m):
        counts[sum(place - rank for rank, place in enumerate(chosen))] += 1
    assert arrangements(m, n) == counts


@pytest.mark.parametrize("n", [5, 8, 70])
def test_the_interval_is_that_of_the_rank_test(n):
    """An end is where the test of scipy goes from rejecting to accepting."""
    from scipy.stats import mannwhitneyu

    draw = random.Random(n)
    above = [draw.lognormvariate(0.3, 0.2) for _ in range(n)]
    below = [draw.lognormvariate(0, 0.2) for _ in range(n)]
    found = ratio_of(above, below)
    method = "exact" if n <= 60 else "asymptotic"

    def p(ratio):
        moved = [value * ratio for value in below]
        return mannwhitneyu(above, moved, method=method).pvalue

    for end, out in ((found.low, 0.999999), (found.high, 1.000001)):
        assert p(end * out) <= 0.051
        assert p(end / out) > 0.049


def test_a_ratio_is_the_median_of_all_pairs():
    above, below = [2.0, 3.0, 8.0], [1.0, 2.0]
    pairs = [one / other for one in above for other in below]
    assert ratio_of(above, below).value == statistics.median(pairs)


def test_three_repeats_of_each_kind_have_no_interval_and_four_have():
    three, four = ratio_of([1, 2, 3], [4, 5, 6]), ratio_of([1, 2, 3, 4], [5, 6, 7, 8])
    assert (three.low, three.high) == (None, None)
    assert (four.low, four.high) == (1 / 8, 4 / 5)


def test_what_is_saved_is_what_is_not_left():
    left = ratio_of([1, 2, 3, 4], [5, 6, 7, 8])
    saved = left.complement
    assert (saved.value, saved.low, saved.high) == (1 - left.value, 1 - 4 / 5, 1 - 1 / 8)
    assert ratio_of([1], [2]).complement.low is None
