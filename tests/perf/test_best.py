"""Figures of the choice of options, simulated."""

import pytest

from perf import best
from perf.figure import Figure


def missed(figures):
    return [figure for figure in figures if figure.met is False]


@pytest.mark.nightly
def test_every_figure_holds_with_a_few_studies():
    assert missed(best.best_figures(quick=True)) == []


def test_a_missed_target_is_the_exit_code(monkeypatch, capsys):
    bad = Figure(group="a group", name="a name", value=0.5, error=0.1, target="< 1", met=False)
    monkeypatch.setattr(best, "best_figures", lambda *, quick: [bad])
    assert best.main(["--quick"]) == best.EXIT_MISSED
    assert "a name" in capsys.readouterr().out
