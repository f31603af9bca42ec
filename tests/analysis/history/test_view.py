"""A history in the terminal, on its page, and as trends."""

import pytest

from orbax_bench_core.analysis.history import view
from orbax_bench_core.analysis.history.model import PastRun, PastSeries
from orbax_bench_core.analysis.history.trends import trend
from orbax_bench_core.analysis.history.view import history_document
from orbax_bench_core.analysis.history.words import release_and_code
from orbax_bench_core.pages import to_html
from tests.conftest import NOON
from tests.support.shown import assert_tells, terminal


@pytest.fixture
def said():
    """Returns what is printed of a history."""

    def say(history, *, width=160, details=False, **options):
        return terminal(history_document(history, **options), width=width, details=details)

    return say


@pytest.mark.parametrize("shape", ["changed", "separate"])  # whose runs lie in one folder
def test_every_number_is_told(request, shape):
    # A place in the order of runs stands for the run, whose day is told.
    unless = ("index", "flagged", "significance", "evidence")
    assert_tells(request.getfixturevalue(shape), history_document, unless=unless)


def test_the_worst_flag_is_the_headline_and_its_question_comes_next(said, changed):
    brief = said(changed)
    assert "? FLAGGED: save +19 % (slower) since 2026-03-14 (orbax-checkpoint: 0.12.7 → " in brief
    assert "\nNext: orbax-bench bisect SUITE.yaml -o asked/run011_run012 --package " in brief


def test_operations_that_decide_nothing_are_shown_on_demand(said, changed):
    hidden = changed.model_copy(
        update={
            "series": (
                *changed.series,
                changed.series[0].model_copy(update={"operation": "zz", "primary": False}),
            )
        }
    )
    assert "zz " not in said(hidden)
    assert "1 series of operations that decide nothing (--all shows them)" in said(hidden)
    assert "zz " in said(hidden, every=True)


def test_a_series_of_one_run_is_behind_those_that_have_a_course(said, changed):
    still = changed.series[0].model_copy(update={"changes": (), "excesses": ()})
    once = still.model_copy(update={"operation": "once", "runs": still.runs[-1:]})
    history = changed.model_copy(update={"series": (once, still)})
    figures = to_html(history_document(history)).split("<figure>")
    assert "once" not in figures[1].partition("</figure>")[0]


def test_very_many_series_have_figures_only_of_the_first(changed, monkeypatch):
    monkeypatch.setattr(view, "MOST_FIGURES", 2)
    many = changed.model_copy(update={"series": changed.series * 5})
    text = to_html(history_document(many))
    assert text.count("<figure>") == 2
    assert "The first 2 series have figures" in text


def past(value, *, code="unknown", **ran):
    return PastRun(
        run_id="r", place="p", began_at=NOON, value=value, low=value, high=value, n=5,
        ran=ran, code=code,
    )  # fmt: skip


def heights(*values, kind="ratio"):
    """Returns how far up a trend each run of a series stands, in percent."""
    runs = tuple(past(value) for value in values)
    series = PastSeries(
        point_id="i", point="p", operation="save", kind=kind, primary=True, runs=runs
    )
    drawn = trend(series, 0.1)
    (line,) = [mark for mark in drawn.marks if mark.shape == "line"]
    return [drawn.y.scale.place(value) for _, value in line.at]


def test_a_trend_is_flat_where_no_verdict_would_call_it_slower():
    flat = heights(23.7e-3, 24.7e-3, 24.0e-3, kind="seconds")
    assert max(flat) - min(flat) < 12
    assert all(45 < each < 55 for each in heights(1.0, 1.01, 0.99))


def test_the_first_slow_night_is_seen_and_one_far_out_does_not_flatten_the_rest():
    *before, last = heights(*[1.0, 1.02, 0.99] * 4, 1.5)
    assert max(before) < 40
    assert last == 100
    *others, far = heights(1.0, 1.1, 1.2, 1.1, 1.0, 40.0)
    assert far == 100
    assert max(others) - min(others) > 10


def test_the_code_under_test_is_named_and_our_own_commit_only_without_it():
    ran = {"orbax-checkpoint": "0.12.8", "commit": "c0ffee"}
    assert (
        release_and_code(past(1.0, code="00290e1f963c", **ran)) == "orbax 0.12.8, code 00290e1f963c"
    )
    unknown = past(1.0, code="unknown (no repository)", **ran)
    assert release_and_code(unknown) == "orbax 0.12.8, commit c0ffee"
