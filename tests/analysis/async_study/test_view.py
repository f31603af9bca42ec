"""A study for people: its numbers and sentences, in the terminal and on pages."""

import pytest

from orbax_bench_core.analysis.async_study import view
from orbax_bench_core.analysis.async_study.view import study_document
from orbax_bench_core.pages import to_markdown
from tests.support.shown import assert_tells, terminal


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


def test_an_interval_has_the_unit_of_its_median(study):
    (series,) = study.series
    size = series.sizes[0]
    times = size.blocking.blocked.model_copy(update={"median": 0.5, "low": 0.25, "high": 1.5})
    kind = size.blocking.model_copy(update={"blocked": times})
    sizes = (size.model_copy(update={"blocking": kind}), *series.sizes[1:])
    changed = study.model_copy(update={"series": (series.model_copy(update={"sizes": sizes}),)})
    assert "| 500 ms (250 to 1500) |" in to_markdown(study_document(changed))


def test_every_number_is_told(study, eventful):
    # Of speeds the page has the inverse, and lines of one size or none are not drawn.
    assert_tells(study, study_document)
    assert_tells(eventful, study_document)
    assert "for 2.05 s instead of 20.1 s (90 % less) at 1B parameters\n" in terminal(
        study_document(study), width=200
    )


def test_sizes_in_bytes_have_no_documented_marks(eventful):
    documents = [
        study_document(eventful.model_copy(update={"series": (series,)}))
        for series in eventful.series
    ]
    drawn = [document.summary[0] for document in documents]
    in_bytes = [chart for chart in drawn if chart.x.label == "bytes"]
    assert len(in_bytes) == 1
    assert [mark.name for mark in in_bytes[0].marks if "documented" in mark.name] == []
