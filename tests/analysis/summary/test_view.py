"""A summary as people see it: what was measured, what failed, and what speaks against it."""

import re

import pytest

from orbax_bench_core import pages as documents
from orbax_bench_core.analysis.summary import ExtraColumns, summarize, summary_document
from orbax_bench_core.measure import RESIDENT_SHARE, TIME, Sample
from orbax_bench_core.pages import to_html, to_markdown
from orbax_bench_core.records import ErrorInfo, OptionEffect, Run, StoreTrouble, repeats_of
from tests.support.large_sweep import large_sweep  # noqa: F401 - a fixture
from tests.support.pages import assert_whole
from tests.support.paired_runs import make_paired_run  # noqa: F401 - a fixture
from tests.support.shown import terminal

ERROR = ErrorInfo(type="OSError", message="the storage is gone")


def told(info, records, **more):
    """Returns the document of records of a run."""
    return summary_document(info, summarize(repeats_of(records)), "out", **more)


@pytest.fixture
def document_of(make_run):
    """Returns the document of records, whose run is written."""

    def make(records, points=(), **more):
        run = make_run(records, **({"points": points} if points else {}))
        return told(run.read_info(), records, example=next(iter(records), None), **more)

    return make


def test_several_points_have_a_row_each_on_one_screen(document_of, make_record, make_point):
    points = [make_point(options={"a": n}, label=f"a={n}") for n in range(5)]
    records = [
        make_record(point, repeat, times={"save": 1.0 + n + repeat / 10, "load": 0.1 + n / 100})
        for n, point in enumerate(points)
        for repeat in range(3)
    ]
    document = document_of(records)
    page, brief = to_html(document), terminal(document)
    assert_whole(page)
    assert len(page.encode()) < 60_000
    assert "<script" not in page
    assert document.headline.said == (
        "MEASURED: saves take 1.1 s (`a=0`) to 5.1 s (`a=4`), loads take 100 ms (`a=0`) to 140 ms "
        "(`a=4`) at 5 points over 15 repeats"
    )
    assert len(brief.splitlines()) < 20
    assert brief.endswith("\nNext: orbax-bench report out --details\n")
    rows = [line.split() for line in brief.splitlines()[:6]]
    assert rows[0] == ["a", "save", "load", "(unknown)"]
    assert rows[1] == ["0", "1.1", "s", "(9", "%)", "100", "ms", "(0", "%)"]


def test_arms_are_no_points(make_paired_run):
    run = Run(make_paired_run(0))
    document = summary_document(run.info, summarize(run.repeats()), "out")
    assert document.headline.text.endswith(" in both arms over 20 repeats")


def test_a_single_point_has_a_row_per_operation(document_of, make_record):
    times = ({"save_blocking": 0.1, "save": s, "load": 1.0} for s in (2.0, 2.2, 2.4))
    records = [make_record(None, n, times=of) for n, of in enumerate(times)]
    [key] = {record.point_id for record in records}
    extra = ExtraColumns(
        headings=("limit", "of limit"),
        cells={(key, "save"): ("write", "50 %")},
        notes={(key, "save"): "It dominates."},
        legend="Limit: the least.",
    )
    document = document_of(records, extra=extra)
    assert "saves take 2.2 s (spread 9 %)" in document.headline.text
    lines = terminal(document).splitlines()
    assert [line.split("  ")[0] for line in lines[1:4]] == [
        "save, blocking",
        "save",
        "load (unknown)",
    ]
    assert lines[2].rstrip().endswith("50 %")
    whole = terminal(document, details=True)
    assert "save: It dominates." in whole
    assert "Limit: the least." in whole


def test_every_repeat_is_a_dot_and_one_far_out_flattens_nothing(document_of, make_record):
    seconds = [1.0, 1.1, 1.2, 1.3, 1000.0]
    records = [make_record(None, n, times={"save": s}) for n, s in enumerate(seconds)]
    chart = document_of(records).summary[0]
    dots = [len(mark.at) for mark in chart.marks if mark.shape == "dots"]
    assert dots == [4, 1]
    assert chart.x.scale.high < 10


def test_failures_are_the_headline_in_counts(document_of, make_record, make_point):
    good, bad = (make_point(options={"a": n}, label=f"a={n}") for n in range(2))
    error = ErrorInfo(type="ValueError", message="no <b>[luck]", traceback="Traceback: here")
    records = [
        *(make_record(good, n, times={"save": 1.0}) for n in range(2)),
        *(make_record(bad, n, status="failed", error=error) for n in range(2)),
    ]
    document = document_of(records)
    assert document.headline.said == (
        "✗ INCOMPLETE: 2 of 4 repeats failed at 1 of 2 points: ValueError: no <b>[luck]"
    )
    assert "Traceback: here" in terminal(document, details=True)
    assert "<b>[luck]" not in to_html(document)


def test_another_answer_is_the_headline_with_its_picture(make_run, make_record):
    records = [make_record(times={"save": 1.0})]
    axis = documents.axis("s", 0, 1, documents.digits)
    other = documents.Document(
        about="",
        headline=documents.Callout("STEADY", "no leak", "good"),
        summary=(documents.Chart("Its picture", "flat", axis, axis, ()),),
        following=documents.Code("orbax-bench soak out"),
    )
    info = make_run(records).read_info()
    found = told(info, records, answers={"Soak": other}, files={"soak.html": "growth"})
    assert found.headline == other.headline
    assert found.summary[0].title == "Its picture"
    assert found.following.text == "orbax-bench soak out"
    assert 'href="soak.html"' in to_html(found)


def effect(option, asked, state, proof="a proof"):
    return OptionEffect(option=option, asked=asked, state=state, proof=proof)


def test_what_speaks_against_the_figures_is_in_every_medium(make_run, make_record, make_point):
    record = {"times": {"save": 1.0}}
    said = {"num_bytes": 1, "digest": {}}
    points = [make_point(options={"a": n}, label=f"a={n}") for n in range(3)]
    effects = (effect("use_ocdbt", True, "in effect"), effect("n", None, "not in effect"))
    trouble = StoreTrouble(operation="save", occurrence=0, kind="storage errors", count=3)
    failed = make_record(points[0], 0, times={}, status="failed", error=ERROR)
    records = [
        make_record(points[0], **record, state={**said, "verified": "saved"}),
        make_record(points[1], **record, state={**said, "verified": "itself"}, effects=effects),
        make_record(points[2], **record, store_troubles=(trouble,), attempts=failed.as_attempt()),
    ]
    run = make_run(records)
    summary = summarize(Run(run).repeats(warmups=True))
    document = summary_document(run.read_info(), summary, "out")
    whole = terminal(document, width=200, details=True)
    for text in (whole, to_markdown(document).replace("\\", ""), to_html(document)):
        text = text.replace("\xa0", " ")
        assert "save: 1 of 1 repeats had trouble with storage: 3 failed answers (5xx)" in text
        assert "1 point verified against what was saved" in text
        assert "1 point not verified: compared only with another load of the same bytes" in text
        assert "1 of 1 repeats passed only when they were tried again" in text
        assert "Options: 1 in effect, 1 not in effect (n)." in text
    assert "2 more doubts: with --details." in " ".join(terminal(document).split())


def test_a_proof_that_an_option_does_nothing_outweighs_all_others(make_record, make_point):
    point = make_point()
    states = ["in effect", "not in effect", "not proved"]
    records = [
        make_record(point, n, times={"save": 1.0}, effects=(effect("x", 1, state),))
        for n, state in enumerate(states)
    ]
    (status,) = summarize(repeats_of(records)).points
    assert [one.state for one in status.effects] == ["not in effect"]


@pytest.mark.parametrize(
    "provenance",
    [{}, {"host": None, "devices": [], "git": {}}, {"host": {"memory_bytes": 10**400}}],
    ids=["nothing", "no mappings", "no machine"],
)
def test_what_a_record_does_not_say_of_its_machine_is_unknown(document_of, make_record, provenance):
    said = to_markdown(document_of([make_record(provenance=provenance)]))
    assert "unknown, unknown, unknown CPUs, unknown memory" in said
    assert "unknown, dirty: unknown" in said


@pytest.mark.parametrize(
    ("shares", "word"),
    [([1.0, 0.97], "warm"), ([0.0], "cold"), ([1.0, 0.0], "mixed"), ([], "unknown")],
)
def test_a_load_says_what_its_cache_was_and_how_to_measure_the_other(
    document_of, make_record, shares, word
):
    time = [Sample(name, 0, TIME, 1.0, "s") for name in ("save", "load")]
    records = [
        make_record(
            None, at, samples=(*time, Sample("load", 0, RESIDENT_SHARE.name, share, "ratio"))
        )
        for at, share in enumerate(shares)
    ] or [make_record(samples=tuple(time))]
    said = terminal(document_of(records), details=True)
    assert f"load ({word})" in said
    other = {"warm": "cold", "cold": "warm"}.get(word)
    assert ("execution.cache=" in said) == bool(other)
    assert other is None or f"execution.cache={other} " in said


@pytest.mark.slow
def test_two_hundred_points_fit_on_a_page(large_sweep):
    assert len(large_sweep["report"].encode()) < 1_000_000
    assert_whole(large_sweep["report"])


@pytest.mark.slow
def test_the_time_of_a_save_is_shown_by_stage(large_sweep):
    told = large_sweep["report"].replace("\xa0", " ")
    assert "writes arrays" in told
    assert re.search(r"device to host [\d.]+ ms, 20 %", told)
