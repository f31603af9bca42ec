"""A history in the terminal, on its page, and as trends."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.analysis.history import view
from orbax_bench_core.analysis.history.model import PastRun, PastSeries
from orbax_bench_core.analysis.history.view import history_document, trend_plot
from orbax_bench_core.analysis.history.words import release_and_code
from orbax_bench_core.document import print_document, to_html
from tests.conftest import NOON
from tests.support.pages import assert_whole


@pytest.fixture
def said():
    """Returns what is printed of a history."""

    def say(history, *, width=160, **options):
        console = Console(file=io.StringIO(), width=width)
        print_document(history_document(history, **options), console)
        return console.file.getvalue()

    return say


def test_seconds_are_shown_run_by_run_with_the_reason_why_nothing_is_looked_for(said, separate):
    text = said(separate)
    assert "the last 10 of 12 runs:" in text
    assert "run011" in text
    assert "run001" not in text
    assert "Raw seconds wander from day to day" in text
    assert "None is a ratio to a reference arm, so no change can be told." in text


def test_seconds_at_80_columns_have_whole_dates_and_numbers(said, separate):
    code = "5cd93852968a with changes 80c52803"
    [series] = separate.series
    runs = tuple(run.model_copy(update={"code": code}) for run in series.runs)
    changed = series.model_copy(update={"runs": runs})
    lines = said(separate.model_copy(update={"series": (changed,)}), width=80).splitlines()
    first = next(number for number, line in enumerate(lines) if "began" in line)
    table = lines[first : lines.index("", first)]
    assert max(map(len, table)) <= 80
    for run in runs[-10:]:
        [row] = [line for line in table if run.run_id in line]
        assert f"{run.began_at:%Y-%m-%d %H:%M}" in row
    assert sum("5cd93852968a" in line for line in table) == 10


def test_one_run_is_one_short_table(said, separate):
    last = [series.model_copy(update={"runs": series.runs[-1:]}) for series in separate.series]
    text = said(separate.model_copy(update={"num_runs": 1, "series": tuple(last)}))
    series = last[0]
    assert f"{series.point} {series.point_id}\n" in text
    assert len([line for line in text.splitlines() if "median" in line]) == 1
    assert f"one run, {series.runs[0].run_id} of " in text
    assert len(text.splitlines()) <= 4 + 2 * len(last) + 2


def test_operations_that_decide_nothing_are_shown_on_demand(said, changed):
    hidden = changed.model_copy(
        update={
            "series": (
                *changed.series,
                changed.series[0].model_copy(update={"operation": "zz", "primary": False}),
            )
        }
    )
    assert " zz\n" not in said(hidden)
    assert "1 series of operations that decide nothing" in said(hidden)
    assert " zz\n" in said(hidden, every=True)


def test_nothing_at_all_can_be_shown(said, build, make_run, make_record):
    text = said(build([make_run([make_record(status="skipped")])]))
    assert "passed over:" in text
    assert "1 run, 0 series." in text


@pytest.mark.parametrize("name", ["changed", "separate"])
def test_the_page_is_whole_and_needs_nothing_else(request, name):
    assert_whole(to_html(history_document(request.getfixturevalue(name))))


def test_very_many_series_have_figures_only_of_the_first(changed, monkeypatch):
    monkeypatch.setattr(view, "MOST_FIGURES", 2)
    many = changed.model_copy(update={"series": changed.series * 5})
    text = to_html(history_document(many))
    assert text.count("<svg") == 2
    assert "The first 2 series have figures" in text


def past(value, *, code="unknown", **ran):
    return PastRun(
        run_id="r", place="p", began_at=NOON, value=value, low=value, high=value, n=5,
        ran=ran, code=code,
    )  # fmt: skip


@pytest.fixture
def height():
    """Returns how far up each run of a series stands, in percent."""

    def of(values):
        series = PastSeries(
            point_id="i", point="p", operation="save", kind="ratio", baseline="", candidate="",
            primary=True, runs=tuple(past(value) for value in values),
        )  # fmt: skip
        dots = [mark for mark in trend_plot(series).marks if mark.shape == "dots"]
        return [100 - mark.at[0][1] for mark in dots]

    return of


def test_a_step_that_has_not_been_flagged_yet_is_as_high_as_it_is(height):
    *_, good, bad, worse = height([1.0, 1.01] * 5 + [1.02, 3.9, 4.1])
    assert good < 25
    assert bad > 75
    assert worse > bad


def test_the_first_slow_night_is_seen(height):
    *before, last = height([1.0, 1.02, 0.99] * 4 + [4.0])
    assert max(before) < 20
    assert last > 80


def test_one_outlier_does_not_flatten_the_rest(height):
    found = height([1.0, 1.1, 1.2, 1.1, 40.0, 1.0, 1.2, 1.0])
    assert max(found) - min(found) > 60
    assert max(*found[:4], *found[5:]) - min(found) > 30


def test_the_code_under_test_is_named_and_our_own_commit_only_without_it():
    ran = {"orbax-checkpoint": "0.12.8", "commit": "c0ffee"}
    assert (
        release_and_code(past(1.0, code="00290e1f963c", **ran)) == "orbax 0.12.8, code 00290e1f963c"
    )
    unknown = past(1.0, code="unknown (no repository)", **ran)
    assert release_and_code(unknown) == "orbax 0.12.8, commit c0ffee"
