"""Buckets and quantiles."""

from __future__ import annotations

import pytest

from orbax_bench_core.measure.collectors.tensorstore import NO_BUCKETS, buckets_of, quantile_bound


def test_buckets_are_told_from_labels_and_statistics() -> None:
    entry = {"0": 0, "4": 2, "count": 2, "mean": 3.5, "sum_of_squared_deviation": 0.5}

    assert dict(buckets_of(entry)) == {0.0: 0, 4.0: 2}


def test_large_ends_have_a_multiple() -> None:
    assert dict(buckets_of({"262144": 1, "2M": 2, "1G": 3})) == {2**18: 1, 2**21: 2, 2**30: 3}


def test_an_end_of_no_known_form_is_left_out() -> None:
    assert dict(buckets_of({"Inf": 1, "": 1})) == {}


@pytest.mark.parametrize(("share", "end"), [(0.5, 1.0), (0.51, 4.0), (0.99, 4.0), (1.0, 64.0)])
def test_a_quantile_lies_below_the_end_of_its_bucket(share: float, end: float) -> None:
    after = {1.0: 500, 2.0: 0, 4.0: 499, 64.0: 1}

    assert quantile_bound(NO_BUCKETS, after, share) == end


def test_buckets_come_in_any_order() -> None:
    assert quantile_bound(NO_BUCKETS, {16.0: 60, 2.0: 40}, 0.3) == 2.0


def test_only_what_was_added_counts() -> None:
    assert quantile_bound({1.0: 1000, 8.0: 1}, {1.0: 1000, 8.0: 2}, 0.5) == 8.0


def test_nothing_added_has_no_quantile() -> None:
    assert quantile_bound({1.0: 3}, {1.0: 3}, 0.5) is None
