"""Figures of the rules beside the gate, simulated."""

import pytest

from perf import side_rules
from perf.figure import Figure, at_least, at_most


def missed(figures):
    return [figure for figure in figures if figure.met is False]


def test_a_bound_allows_for_chance_and_no_more():
    assert at_most("", "", 12, 1000, 0.01).met
    assert not at_most("", "", 30, 1000, 0.01).met
    assert at_least("", "", 940, 1000, 0.95).met
    assert not at_least("", "", 900, 1000, 0.95).met


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


def test_a_missed_target_is_the_exit_code(monkeypatch, capsys):
    bad = Figure(group="a group", name="a name", value=0.5, error=0.1, target="< 1", met=False)
    monkeypatch.setattr(side_rules, "side_figures", lambda *, quick: [bad])
    assert side_rules.main(["--quick"]) == side_rules.EXIT_MISSED
    assert "a name" in capsys.readouterr().out
