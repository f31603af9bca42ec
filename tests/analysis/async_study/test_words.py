"""Numbers and sentences of a study."""

import pytest

from orbax_bench_core.analysis.async_study import view
from orbax_bench_core.analysis.async_study.model import DOCUMENTED, Ratio


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (512, "512"),
        (1208384, "1.21M"),
        (300 * 10**6, "300M"),
        (999_700_000, "1B"),
        (340 * 10**9, "340B"),
        (10**12, "1T"),
    ],
)
def test_a_number_of_parameters(value, text):
    assert view.count(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.4, "40 %"), (0.972, "97.2 %"), (0.9997, "99.97 %"), (-0.25, "-25 %"), (1.0, "100 %")],
)
def test_a_share(ratio, text):
    assert view.percent(ratio) == text


def test_a_share_has_its_interval_where_there_is_one():
    assert view.share(Ratio(value=0.5, low=0.25, high=0.75)) == "50 % [25, 75]"
    assert view.share(Ratio(value=0.5, low=None, high=None)) == "50 %"


def test_a_row_has_every_column(study):
    cells = view.size_row(study.series[0].sizes[0])
    assert len(cells) == len(view.HEADINGS)
    assert cells[:4] == ("1000000", "1M", "1.91 MiB", "6")
    assert cells[4] == "120 ms [118, 122]"


def test_the_headline_tells_the_smallest_and_the_largest(study):
    assert view.headline(study) == (
        "Saving in the background took 57 % off the blocked time at 1M parameters and 90 % at 1B "
        "parameters."
    )


def test_what_is_documented_is_told():
    assert view.documented(DOCUMENTED) == (
        "Documented: 40 % at 300M, 85 % at 8B, 97 % at 340B parameters."
    )


def test_lines_say_their_speeds_their_distance_and_what_they_are_not(study):
    first, limit, last = view.fit_lines(study.series[0])
    assert "100 ms and its bytes at 95.4 MiB/s" in first
    assert "root mean square" in first
    assert "goes to 90 % for large checkpoints" in limit
    assert "not a forecast" in last


@pytest.mark.parametrize(
    ("fit", "line", "said"),
    [
        ({"holds": False}, {"blocking": {"worst": 0.4}}, "not to be trusted"),
        ({"holds": False}, {"background": {"flat": True}}, "where it ends is not measured"),
        ({"holds": False, "limit": None}, {"blocking": {"flat": True}}, "explain nothing"),
    ],
)
def test_lines_that_explain_little_say_so(study, fit, line, said):
    series = study.series[0]
    lines = {
        kind: getattr(series.fit, kind).model_copy(update=update) for kind, update in line.items()
    }
    changed = series.fit.model_copy(update={**fit, **lines})
    assert said in " ".join(view.fit_lines(series.model_copy(update={"fit": changed})))


def test_a_line_that_does_not_grow_has_no_speed(study):
    fit = study.series[0].fit
    flat = fit.model_copy(update={"background": fit.background.model_copy(update={"flat": True})})
    first = view.fit_lines(study.series[0].model_copy(update={"fit": flat}))[0]
    assert "Blocked, async: 50 ms and no shown growth" in first


def test_an_interval_has_the_unit_of_its_median(study):
    size = study.series[0].sizes[0]
    times = size.blocking.blocked.model_copy(update={"median": 0.5, "low": 0.25, "high": 1.5})
    kind = size.blocking.model_copy(update={"blocked": times})
    assert view.size_row(size.model_copy(update={"blocking": kind}))[4] == "500 ms [250, 1500]"
