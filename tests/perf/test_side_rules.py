"""Figures of the rules beside the gate, simulated."""

import pytest

from perf import side_rules


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
    assert [figure for figure in figures(series) if figure.met is False] == []
