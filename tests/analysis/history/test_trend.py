"""The small plot of a series on the morning page."""

import pytest

from orbax_bench_core.analysis.history.model import PastRun, PastSeries
from orbax_bench_core.analysis.history.trend import trend_plot
from orbax_bench_core.analysis.history.words import release_and_code
from tests.conftest import NOON


def past(value, *, code="unknown", **ran):
    return PastRun(
        run_id="r", place="p", began_at=NOON, value=value, low=value, high=value, n=5,
        ran=ran, code=code,
    )  # fmt: skip


@pytest.fixture
def height():
    """Returns how far up each run of a series stands, in percent."""

    def of(values):
        series = PastSeries(
            point_id="i", point="p", operation="save", kind="ratio", baseline="", candidate="",
            primary=True, runs=tuple(past(value) for value in values),
        )  # fmt: skip
        dots = [mark for mark in trend_plot(series).marks if mark.shape == "dots"]
        return [100 - mark.at[0][1] for mark in dots]

    return of


def test_a_step_that_has_not_been_flagged_yet_is_as_high_as_it_is(height):
    *_, good, bad, worse = height([1.0, 1.01] * 5 + [1.02, 3.9, 4.1])
    assert good < 25
    assert bad > 75
    assert worse > bad


def test_the_first_slow_night_is_seen(height):
    *before, last = height([1.0, 1.02, 0.99] * 4 + [4.0])
    assert max(before) < 20
    assert last > 80


def test_one_outlier_does_not_flatten_the_rest(height):
    found = height([1.0, 1.1, 1.2, 1.1, 40.0, 1.0, 1.2, 1.0])
    assert max(found) - min(found) > 60
    assert max(*found[:4], *found[5:]) - min(found) > 30


def test_the_code_under_test_is_named_and_our_own_commit_only_without_it():
    ran = {"orbax-checkpoint": "0.12.8", "commit": "c0ffee"}
    assert (
        release_and_code(past(1.0, code="00290e1f963c", **ran)) == "orbax 0.12.8, code 00290e1f963c"
    )
    unknown = past(1.0, code="unknown (no repository)", **ran)
    assert release_and_code(unknown) == "orbax 0.12.8, commit c0ffee"
