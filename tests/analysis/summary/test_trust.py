"""What a summary says beside the times: verification, options in effect, trouble with storage."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.analysis.summary import summarize, summary_document, terminal_document
from orbax_bench_core.document import print_document, to_html, to_markdown
from orbax_bench_core.records import ErrorInfo, OptionEffect, Run, StoreTrouble, repeats_of


def shown(document):
    console = Console(file=io.StringIO(), width=200)
    print_document(document, console)
    return console.file.getvalue()


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
        "console": shown(terminal_document(info, summary)),
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
    said = shown(terminal_document(run.read_info(), summarize(Run(run).repeats(warmups=True))))
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
    on_terminal = shown(terminal_document(info, summary))
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
