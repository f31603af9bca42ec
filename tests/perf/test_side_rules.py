"""Figures of the rules beside the gate, simulated."""

import pytest

from perf import side_rules


def missed(figures):
    return [figure for figure in figures if figure.met is False]


@pytest.mark.slow
def test_unpaired_warnings_are_as_rare_as_they_say():
    assert missed(side_rules.unpaired_figures(1500)) == []


@pytest.mark.slow
def test_two_runs_without_a_past_seldom_regress():
    assert missed(side_rules.first_use_figures(200)) == []


@pytest.mark.slow
def test_health_flags_are_as_rare_as_they_say():
    assert missed(side_rules.health_figures(60)) == []


@pytest.mark.slow
def test_intervals_of_process_noise_hold_the_truth():
    assert missed(side_rules.worker_figures(300)) == []


@pytest.mark.slow
def test_a_release_search_names_no_unchanged_release():
    assert missed(side_rules.search_figures(2)) == []
