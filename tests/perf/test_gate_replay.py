"""Real series are replayed as they were, or stretched without changing their order."""

import numpy as np
import pytest

from perf.gate.replay import Series, read_series, stretched, windows

SERIES = Series(name="a", times=np.arange(1.0, 101.0))


def test_what_was_measured_is_read(tmp_path):
    (tmp_path / "real_saves_and_loads.csv").write_text(
        "repeat,save_s,load_s\n0,0.5,0.1\n1,0.25,0.2\n"
    )
    found = {series.name: series.times.tolist() for series in read_series(tmp_path)}
    assert found == {"busy save": [0.5, 0.25], "busy load": [0.1, 0.2]}


def test_the_repository_has_real_series():
    assert all(len(series.times) >= 400 and series.real for series in read_series())


def test_windows_are_consecutive_values_in_their_order():
    found = windows(SERIES, np.random.default_rng(0), 50, 10)
    assert found.shape == (50, 10)
    assert (np.diff(found, axis=1) == 1).all()
    assert len(set(found[:, 0])) > 10


def test_stretching_all_noise_keeps_the_order_of_the_values():
    series = read_series()[0]
    found = stretched(series, whole=True)
    assert (found.variation, found.real) == (pytest.approx(0.5, abs=1e-3), False)
    assert (np.argsort(found.times) == np.argsort(series.times)).all()


def test_stretching_slow_states_keeps_the_noise_between_neighbours():
    series = read_series()[0]
    found = stretched(series, whole=False)
    assert (found.variation, found.real) == (pytest.approx(0.5, abs=1e-3), False)
    neighbours = [np.median(np.abs(np.diff(np.log(s.times)))) for s in (series, found)]
    assert neighbours[1] == pytest.approx(neighbours[0], rel=0.15)
    assert found.correlation > series.correlation
