"""Figures of the choice of options, simulated."""

import pytest

from perf import best


@pytest.mark.nightly
def test_every_figure_holds_with_a_few_studies():
    assert [figure for figure in best.best_figures(quick=True) if figure.met is False] == []
