"""The interval of a median."""

from __future__ import annotations

import random

import pytest

from perf.save_cost import interval_of_median


def test_it_lies_between_the_known_ranks() -> None:
    # Tables of the sign test give the 6th and the 15th of 20 values.
    assert interval_of_median([float(rank) for rank in range(1, 21)]) == (6.0, 15.0)


def test_the_order_of_the_values_does_not_matter() -> None:
    values = [float(rank) for rank in range(50)]
    shuffled = random.Random(0).sample(values, len(values))

    assert interval_of_median(shuffled) == interval_of_median(values)


@pytest.mark.parametrize("size", [20, 61])
def test_it_covers_the_median_as_often_as_it_says(size: int) -> None:
    rng = random.Random(size)
    intervals = [
        interval_of_median([rng.lognormvariate(0, 1) for _ in range(size)]) for _ in range(2000)
    ]

    assert 0.94 <= sum(low <= 1 <= high for low, high in intervals) / 2000 <= 0.99
