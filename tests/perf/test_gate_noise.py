"""Made-up noise is what the tables say that it is."""

import numpy as np
import pytest

from perf.gate.noise import REGIMES


def drawn(name, series=400, length=120):
    return REGIMES[name](np.random.default_rng(1), series, length)


def lag(times):
    logs = np.log(times)
    logs = logs - logs.mean(axis=1, keepdims=True)
    return float((logs[:, 1:] * logs[:, :-1]).mean() / (logs**2).mean())


@pytest.mark.parametrize("name", ["iid", "ar1", "session"])
def test_the_coefficient_of_variation_is_five_percent(name):
    times = drawn(name)
    assert times.std() / times.mean() == pytest.approx(0.05, rel=0.05)


def test_one_in_ten_stalls_and_forty_drift_by_fifteen_percent():
    assert (drawn("stall") > 1.3).mean() == pytest.approx(0.1, abs=0.01)
    means = drawn("drift", 4000, 41).mean(axis=0)
    assert means[40] / means[0] == pytest.approx(1.15, abs=0.01)


def test_a_quarter_of_the_time_is_spent_in_a_slow_state_that_lasts():
    slow = drawn("regime") > 1.2
    assert slow.mean() == pytest.approx(0.25, abs=0.02)
    assert (slow[:, 1:] != slow[:, :-1]).mean() == pytest.approx(2 * 0.05 * 0.75, abs=0.01)


def test_only_ar1_follows_its_predecessor():
    assert lag(drawn("ar1")) == pytest.approx(0.6, abs=0.05)
    assert lag(drawn("iid")) == pytest.approx(0.0, abs=0.05)
