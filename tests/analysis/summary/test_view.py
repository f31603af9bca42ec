"""A summary in a terminal and on pages: times, and what it says beside them."""

import io
import re

import pytest
from rich.console import Console

from orbax_bench_core.analysis.summary import summarize, summary_document, terminal_document
from orbax_bench_core.config import CheckpointConfig
from orbax_bench_core.document import print_document, to_html, to_markdown
from orbax_bench_core.records import ErrorInfo, OptionEffect, Run, State, StoreTrouble, repeats_of
from tests.support.large_sweep import large_sweep  # noqa: F401 - a fixture
from tests.support.pages import Outline, assert_whole


def printed(document, width=200):
    """Returns what a terminal of the given width shows."""
    console = Console(width=width, file=io.StringIO())
    print_document(document, console)
    return console.file.getvalue()


def html_page(*run):
    return to_html(summary_document(*run))


def markdown_page(*run):
    return to_markdown(summary_document(*run))


@pytest.fixture
def outline(pages):
    return Outline(pages(html_page))


def test_each_checkpoint_has_its_own_size(make_run, make_record, make_point):
    records = [
        make_record(
            make_point(options={"a": size}, checkpoint=CheckpointConfig(name=name), label=name),
            times={"save": 1.0},
            state=State(num_bytes=size, digest={}),
        )
        for name, size in (("small", 2**20), ("large", 2**30))
    ]
    run = make_run(records)
    page = markdown_page(run.read_info(), summarize(repeats_of(records)), records[0])
    assert "- checkpoint size: small 1 MiB, large 1 GiB\n" in page


def test_html_is_closed_and_needs_nothing_else(outline):
    assert outline.open == []
    assert outline.addresses == []


def test_every_repeat_is_a_dot_on_the_axis_of_its_operation(pages):
    shown = pages(html_page)
    first, second = shown.split("<tbody")[1:3]
    assert ["save</th>" in first, "load</th>" in second] == [True, True]
    assert len(re.findall(r'<path class="dots t-bar" d="M\d+ \d+h0"', first)) == 2
    assert "<title>500\xa0ms</title>" in first


@pytest.mark.parametrize("page", [markdown_page, html_page])
def test_a_run_without_records_has_a_page(make_run, make_point, page):
    run = make_run([], points=[make_point()])
    assert "a suite" in page(run.read_info(), summarize(repeats_of([])), None)


def test_html_says_when_no_repeat_has_passed(make_run, make_point):
    run = make_run([], points=[make_point()])
    assert "No repeat has passed." in html_page(run.read_info(), summarize(repeats_of([])), None)


def test_of_very_many_points_the_fastest_are_shown(pages, monkeypatch):
    from orbax_bench_core.analysis.summary import charts

    monkeypatch.setattr(charts, "_MOST_ROWS", 1)
    shown = pages(html_page)
    assert "1 more point of this run, slower ones, are in summary.csv alone." in shown
    assert shown.count('<path class="dots') == 2
    assert "alert(1)" not in shown.split("Time per operation")[1].split("What did not pass")[0]


@pytest.mark.slow
def test_two_hundred_points_fit_in_a_megabyte(large_sweep):
    assert len(large_sweep["report"].encode()) < 1_000_000
    assert_whole(large_sweep["report"])
    assert large_sweep["report"].count('<path class="dots') >= 600


@pytest.mark.slow
def test_an_outlier_is_told_and_flattens_nothing(large_sweep):
    assert "1 repeat is beyond the axis: " in large_sweep["report"]
    _, group = large_sweep["report"].split('scope="rowgroup" colspan="8">save</th>')
    save = group.split("</tr>")[0]
    assert [tick[-2:] for tick in re.findall(r"<span[^>]*>([^<]*)<", save)] == ["ms"] * 3


@pytest.mark.slow
def test_the_time_of_a_save_is_shown_by_stage(large_sweep):
    stages = large_sweep["report"].split("Where the time went")[1]
    assert "writes arrays" in stages
    assert re.search(r"device to host [\d.]+\xa0ms, 20\xa0%", stages)


def effect(option, asked, state, proof="a proof"):
    return OptionEffect(option=option, asked=asked, state=state, proof=proof)


@pytest.fixture
def render(make_run, make_record, make_point):
    """Renders the summary of a run of three points, of which one is not verified."""
    record = {"times": {"save": 1.0}}
    said = {"num_bytes": 1, "digest": {}}
    points = [make_point(options={"a": n}, label=f"a={n}") for n in range(3)]
    records = [
        make_record(points[0], **record, state={**said, "verified": "saved"}),
        make_record(
            points[1],
            **record,
            state={**said, "verified": "itself"},
            effects=(effect("use_ocdbt", True, "in effect"), effect("n", None, "not proved")),
        ),
        make_record(
            points[2],
            **record,
            store_troubles=(
                StoreTrouble(operation="save", occurrence=0, kind="storage errors", count=3),
            ),
        ),
    ]
    run = make_run(records)
    info, summary = run.read_info(), summarize(Run(run).repeats(warmups=True))
    document = summary_document(info, summary, records[0])
    return {
        "console": printed(terminal_document(info, summary)),
        "markdown": to_markdown(document),
        "html": to_html(document),
    }


@pytest.mark.parametrize("output", ["console", "markdown", "html"])
def test_every_output_says_against_what_was_verified(render, output):
    text = render[output]
    assert "1 point verified against what was saved" in text
    assert "1 point not verified: compared only with another load of the same bytes" in text
    assert "1 point not verified: nothing was compared: save_restore[a=2]" in text


@pytest.mark.parametrize("output", ["console", "markdown", "html"])
def test_every_output_says_what_storage_did(render, output):
    assert "save: 1 of 1 repeats had trouble with storage: 3 failed answers (5xx)" in render[output]


def test_pages_have_a_table_of_options(render):
    assert "Options: 1 in effect, 1 not proved (n)." in render["console"]
    row = "| `use_ocdbt` | `true` | in effect | a proof |"
    assert row in render["markdown"]
    assert "Options in effect" in render["html"]
    assert "1 in effect, 1 not proved" in render["html"]


def test_an_option_counts_once_however_many_points_have_it(make_run, make_record, make_point):
    points = [make_point(options={"a": n}) for n in range(3)]
    records = [
        make_record(
            point,
            times={"save": 1.0},
            effects=(
                effect("use_ocdbt", True, "in effect"),
                effect("b", n, "not proved"),
                effect("c", n, "not proved" if n else "in effect"),
            ),
        )
        for n, point in enumerate(points)
    ]
    run = make_run(records)
    said = printed(terminal_document(run.read_info(), summarize(Run(run).repeats(warmups=True))))
    assert "Options: 2 in effect, 2 not proved (b, c in 2 of 3 points)." in said


def test_a_proof_that_an_option_does_nothing_outweighs_all_others(make_record, make_point):
    point = make_point()
    states = ["in effect", "not in effect", "not proved"]
    records = [
        make_record(point, n, times={"save": 1.0}, effects=(effect("x", 1, state),))
        for n, state in enumerate(states)
    ]
    (status,) = summarize(repeats_of(records)).points
    assert [one.state for one in status.effects] == ["not in effect"]


def test_repeats_that_passed_when_tried_again_are_counted(make_run, make_record, make_point):
    point = make_point()
    error = ErrorInfo(type="OSError", message="the storage is gone")
    failed = make_record(point, 0, times={}, status="failed", error=error)
    records = [
        make_record(point, 0, times={"save": 1.0}, attempts=failed.as_attempt()),
        make_record(point, 1, times={"save": 1.0}),
    ]
    run = make_run(records)
    info, summary = run.read_info(), summarize(Run(run).repeats(warmups=True))
    document = summary_document(info, summary)
    on_terminal = printed(terminal_document(info, summary))
    for text in (on_terminal, to_markdown(document), to_html(document)):
        said = " ".join(text.split())
        assert "1 of 2 repeats passed only when they were tried again" in said
        assert "OSError: the storage is gone" in said


@pytest.mark.parametrize(
    "provenance",
    [{}, {"host": None, "devices": [], "git": {}}, {"host": {"memory_bytes": 10**400}}],
    ids=["nothing", "no mappings", "no machine"],
)
def test_what_a_record_does_not_say_of_its_machine_is_unknown(make_run, make_record, provenance):
    run = make_run([record := make_record(provenance=provenance)])
    document = summary_document(run.read_info(), summarize(Run(run).repeats(warmups=True)), record)
    assert "unknown, unknown, unknown CPUs, unknown memory" in to_markdown(document)
    assert "unknown, dirty: unknown" in to_html(document)
