"""Change points on a machine that is now and then slower for days, simulated."""

import json

import numpy as np
import pytest

from perf import history


@pytest.fixture(scope="module")
def outcome():
    """What a hundred runs give, with a level of 5 %."""
    return history.simulate(60, 100, 10, significance=0.05)


@pytest.mark.slow
def test_ratios_seldom_have_a_false_change(outcome):
    assert outcome.false_ratio <= history.MOST_FALSE


@pytest.mark.slow
def test_raw_seconds_nearly_always_have_one(outcome):
    assert outcome.false_raw >= 0.85


@pytest.mark.slow
def test_a_real_change_is_found_among_ratios_and_not_among_seconds(outcome):
    assert outcome.found_ratio >= 0.85
    assert outcome.found_raw <= 0.15


@pytest.mark.slow
def test_the_machine_is_slow_half_of_the_time_and_ratios_do_not_see_it():
    seconds, ratios = history.nightly(2000, 10, np.random.default_rng(0))
    slow = seconds > 1.2
    assert 0.4 < slow.mean() < 0.6
    assert abs(np.median(ratios[slow])) < 0.005


@pytest.mark.slow
def test_a_missed_target_is_the_exit_code(monkeypatch, tmp_path, capsys):
    missed = history.Outcome(dwell=3, false_raw=1, false_ratio=0.5, found_raw=0, found_ratio=1)
    monkeypatch.setattr(history, "simulate", lambda *_: missed)
    file = tmp_path / "out.json"
    assert history.main(["--json", str(file)]) == history.EXIT_MISSED
    assert len(json.loads(file.read_text())) == len(history.DWELLS)
    assert "50.0%" in capsys.readouterr().out
