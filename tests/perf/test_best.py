"""Figures of the choice of options, simulated."""

import pytest

from perf import best


def missed(figures):
    return [figure for figure in figures if figure.met is False]


@pytest.mark.nightly
def test_every_figure_holds_with_a_few_studies():
    assert missed(best.best_figures(quick=True)) == []
