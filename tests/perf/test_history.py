"""Flags of a history, simulated."""

import json

import numpy as np
import pytest

from perf import history
from perf.figure import EXIT_MISSED, Figure


@pytest.mark.nightly
@pytest.mark.slow
def test_the_quick_figures_are_met():
    missed = [figure for figure in history.history_figures(quick=True) if figure.met is False]
    assert missed == []


@pytest.mark.slow
def test_the_machine_is_slow_half_of_the_time_and_ratios_do_not_see_it():
    seconds, ratios = history.nightly(2000, 10, np.random.default_rng(0))
    slow = seconds > 1.2
    assert 0.4 < slow.mean() < 0.6
    assert abs(np.median(ratios[slow])) < 0.005


@pytest.mark.slow
def test_the_thresholds_are_those_of_the_rule(monkeypatch):
    ((end, limits),) = history.thresholds(8000, 60)
    at_five_percent = limits[history.LEVELS.index(0.05)]
    assert (end, at_five_percent) == (60, pytest.approx(3.35, abs=0.06))


def test_a_missed_target_is_the_exit_code(monkeypatch, tmp_path, capsys):
    missed = Figure(group="a group", name="a name", value=0.5, error=0.1, target="< 1", met=False)
    monkeypatch.setattr(history, "history_figures", lambda *, quick: [missed])
    file = tmp_path / "out.json"
    assert history.main(["--json", str(file)]) == EXIT_MISSED
    assert json.loads(file.read_text())[0]["name"] == "a name"
    assert "50.00 %" in capsys.readouterr().out
