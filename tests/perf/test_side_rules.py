"""Figures of the rules beside the gate and of the choice of options, simulated."""

import pytest

from perf import best, side_rules


def missed(figures):
    return [figure for figure in figures if figure.met is False]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("figures", "series"),
    [
        pytest.param(side_rules.unpaired_figures, 1500, id="unpaired warnings are rare"),
        pytest.param(side_rules.first_use_figures, 200, id="without a past few regress"),
        pytest.param(side_rules.health_figures, 60, id="flags of health are rare"),
        pytest.param(side_rules.worker_figures, 300, id="intervals hold the truth"),
        pytest.param(side_rules.search_figures, 2, id="no unchanged release is named"),
    ],
)
def test_the_rules_are_as_reliable_as_they_say(figures, series):
    assert missed(figures(series)) == []


@pytest.mark.nightly
def test_the_choice_of_options_is_as_good_as_it_says_with_a_few_studies():
    assert missed(best.best_figures(quick=True)) == []
