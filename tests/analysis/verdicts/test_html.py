"""The HTML page of a comparison."""

import math
import re

import pytest

from orbax_bench_core.analysis.verdicts.view import MOST_POINTS, verdicts_document
from orbax_bench_core.document import to_html
from orbax_bench_core.gate import SeriesHealth
from tests.support.pages import Outline

NAME = "save_restore[kind=<script>alert(1)</script>|[red]&amp; *x* `y`]"


def verdicts_html(report):
    return to_html(verdicts_document(report))


@pytest.fixture(scope="module")
def page(eventful):
    return verdicts_html(eventful)


@pytest.fixture(scope="module")
def found(page):
    return Outline(page)


@pytest.mark.parametrize(
    "fact",
    [
        "2026-01-02 12:00 UTC",
        "✗ (REGRESSION)",
        "[1.345–1.457]",
        "candidate: drifts by +15 % from start to end",
        "taking turns cost 12 s",
        "failed: candidate failed: ValueError: a|b <b>bold</b> [red]",
        "no load in the candidate",
        "jax is 0.10.1 | [old] in the baseline",
        "only in the baseline: gone[x] 1234",
        "options.a: 1 | 4",
        "only in the candidate: new <b> 5678",
    ],
)
def test_it_shows(found, fact):
    assert fact in found.text


def test_it_is_closed_and_refers_to_nothing_outside(found, page):
    assert found.open == []
    assert [address for address in found.addresses if not address.startswith("#")] == []
    assert "@import" not in page
    assert set(re.findall(r"https?://[^\"<\s]*", page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert set(re.findall(r"url\(([^)]*)\)", page)) <= {f"#{one}" for one in found.ids}


def test_what_figures_refer_to_is_there_once(found):
    assert len(found.ids) == len(set(found.ids))
    assert {address[1:] for address in found.addresses} <= set(found.ids)


def test_nasty_names_and_reasons_are_text(found):
    assert found.tags.count("script") == 1  # that of every page
    assert NAME.replace("`", "") in found.text.replace("`", "")
    assert found.text.count("<b>bold</b>") == 1


def test_the_worst_point_comes_first_and_its_primary_operations_before_others(found):
    table = found.text.split("what to do")[1]
    order = [table.index(name) for name in ("kind=", "save|all", "[a=2]", "[a=3]", "[a=1]")]
    assert order == sorted(order)


def test_every_figure_has_a_title(page):
    figures = page.count("<svg ")
    # Four points; primary operations have series, paired ones blocks.
    assert figures >= 10
    assert page.count('role="img"') == page.count("<title>") - 1 == figures


def test_it_has_colours_for_light_and_dark(page):
    used = set(re.findall(r"var\((--[a-z]+\d?)", page)) - {"--t", "--grid", "--least"}
    light, dark = page.split("prefers-color-scheme: dark")
    assert "--regression" in used
    for variable in used:
        assert f"{variable}: #" in light.split(":root")[1]
        assert f"{variable}: #" in dark.split("}")[0]


@pytest.mark.slow
def test_a_point_that_passes_among_many_is_folded(found, page, make_report, make_verdicts):
    assert page.count("<details open>") == 3
    assert page.count("<details>") == 1
    assert "<details open>" in verdicts_html(make_report(make_verdicts("p")))


@pytest.mark.slow
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0])
def test_values_that_are_no_numbers_are_shown_all_the_same(
    make_operation, make_verdicts, make_report, value
):
    odd = make_operation(
        verdict={"ratio": 1.1, "low": value, "high": value},
        times={"baseline": (1.0, value), "candidate": (value,)},
        block_log_ratios=(value, 0.1),
    )
    nothing = make_operation("load", verdict={"ratio": value, "low": None, "high": None})
    report = make_report(make_verdicts("p", odd, nothing))
    assert Outline(verdicts_html(report)).open == []


@pytest.mark.slow
def test_one_value_is_a_figure_too(make_operation, make_verdicts, make_report):
    one = make_operation(times={"baseline": (0.0001,)}, block_log_ratios=(800.0,))
    assert "µs" in Outline(verdicts_html(make_report(make_verdicts("p", one)))).text


@pytest.mark.slow
def test_missing_health_is_no_obstacle(make_operation, make_verdicts, make_report):
    report = make_report(make_verdicts("p", make_operation(health={})))
    assert "1.010x" in Outline(verdicts_html(report)).text


@pytest.mark.slow
def test_the_series_show_flagged_drift_and_regimes(make_operation, make_verdicts, make_report):
    times = (1.0, 1.01, 1.02, 1.0, 1.01, 1.4, 1.41, 1.42, 1.4, 1.41)
    health = {
        "baseline": SeriesHealth(n=10, median=1.2, regimes=True, regime_ratio=1.4),
        "candidate": SeriesHealth(n=10, median=1.2, drift=0.4, drift_p=0.0001),
    }
    operation = make_operation(health=health, times={"baseline": times, "candidate": times})
    text = Outline(verdicts_html(make_report(make_verdicts("p", operation)))).text
    assert "baseline: two regimes, 1.40x apart" in text
    assert "candidate: drift +40 %" in text


@pytest.mark.slow
def test_a_healthy_series_has_no_remark(make_verdicts, make_report):
    text = Outline(verdicts_html(make_report(make_verdicts("p")))).text
    assert "drift +" not in text
    assert "regimes," not in text


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_points_beyond_the_most_have_rows_and_no_figures(
    make_operation, make_verdicts, make_report
):
    bare = make_operation(times={}, block_log_ratios=())
    points = [make_verdicts(f"p{i}", bare, blocks=1) for i in range(MOST_POINTS + 2)]
    page = verdicts_html(make_report(*points))
    assert page.count("<svg ") == MOST_POINTS
    assert "2 more points have no figures here" in page
    assert page.count('class="point"') == MOST_POINTS + 2


@pytest.mark.slow
def test_a_page_of_two_points_is_small(make_operation, make_verdicts, make_report):
    operations = [make_operation(name) for name in ("save", "load")]
    report = make_report(*(make_verdicts(f"save_restore[a={a}]", *operations) for a in (1, 2)))
    assert len(verdicts_html(report).encode()) < 60_000


@pytest.mark.slow
def test_many_points_can_be_chosen_by_their_verdict(make_verdicts, make_report, undrawn):
    points = [make_verdicts(f"save_restore[a={a}]") for a in range(9)]
    page = verdicts_html(make_report(*points))
    assert page.count('<tbody data-k="') == 9
    assert '"choices":{"verdict":{' in page
    assert 'class="filter"' not in verdicts_html(make_report(*points[:8])).split("<body>")[1]


def test_one_stalled_operation_does_not_flatten_the_others(make_operation, make_verdicts):
    from orbax_bench_core.analysis.verdicts.plots import draw_series
    from orbax_bench_core.document import figures

    times = {"baseline": (1.0, 1.1, 1.0, 1.1, 1.0), "candidate": (1.0, 1.1, 60.0, 1.1, 1.0)}
    operation = make_operation(times=times)
    with figures.style():
        axes = figures.new_figure(4, 2).subplots()
        draw_series(axes, make_verdicts("p", operation), operation)
    assert axes.get_ylim()[1] < 2
    assert "60 s" in [text.get_text() for text in axes.texts]
