"""Figures of the choice of options, simulated."""

import numpy as np
import pytest

from perf import best
from perf.figure import Figure


def missed(figures):
    return [figure for figure in figures if figure.met is False]


def test_a_search_of_points_far_apart_is_short():
    times = np.array([0.0, 1.0, 1.0, 1.0])
    logs = best.measured_logs(np.random.default_rng(0), times, 0.05, 20)
    end = best.searched(times, logs)
    assert (end.near, end.ended, end.rounds, end.measured) == (True, True, 3, 12)


def test_a_search_without_enough_rounds_says_how_many_are_missing():
    times = np.zeros(8)
    logs = best.measured_logs(np.random.default_rng(0), times, 0.5, 4)
    end = best.searched(times, logs)
    assert not end.ended
    assert end.missing > 10


@pytest.mark.nightly
def test_every_figure_holds_with_a_few_studies():
    assert missed(best.best_figures(quick=True)) == []


def test_a_missed_target_is_the_exit_code(monkeypatch, capsys):
    bad = Figure(group="a group", name="a name", value=0.5, error=0.1, target="< 1", met=False)
    monkeypatch.setattr(best, "best_figures", lambda *, quick: [bad])
    assert best.main(["--quick"]) == best.EXIT_MISSED
    assert "a name" in capsys.readouterr().out
