"""The Markdown page of a comparison, and the figures that it links to."""

import re

import pytest

from orbax_bench_core.analysis.verdicts.view import verdicts_document
from orbax_bench_core.document import to_markdown, write_figures


def verdicts_markdown(report, *, plots):
    return to_markdown(verdicts_document(report), figures=plots)


@pytest.fixture(scope="module")
def page(eventful):
    return verdicts_markdown(eventful, plots="plots")


@pytest.mark.parametrize(
    "fact",
    [
        "# ✗ REGRESSION: a suite\n",
        "| [1.163–1.259] | 1.210x | ✗ REGRESSION | REGRESSION of the typical time",
        "| ✗ (REGRESSION) |",
        "candidate: drifts by +15 % from start to end",
        "- taking turns cost 12 s\n",
        "- failed: candidate failed: ValueError: a|b &lt;b>bold&lt;/b> \\[red\\]\n",
        "- jax is 0.10.1 | \\[old\\] in the baseline\n",
        "- only in the baseline: gone\\[x\\] 1234",
        "- only in the candidate: new &lt;b> 5678\n",
    ],
)
def test_it_shows(page, fact):
    assert fact in page


def test_every_row_has_the_columns_of_the_heading(page):
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert len(rows) == 8
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {7}


def test_outside_of_code_there_is_no_html(page):
    prose = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", page)
    assert "<" not in prose


@pytest.mark.slow
def test_all_figures_that_it_links_to_are_written(eventful, page, tmp_path):
    written = write_figures(verdicts_document(eventful), tmp_path / "my plots")
    links = re.findall(r"^!\[.*\]\(plots/(.*)\)$", page, re.MULTILINE)
    assert [path.name for path in written] == links
    assert len(links) >= 8
    assert {path.read_bytes()[:4] for path in written} == {b"\x89PNG"}


def test_a_link_with_odd_characters_is_quoted(make_verdicts, make_report):
    page = verdicts_markdown(make_report(make_verdicts("p")), plots="my (plots)/")
    links = re.findall(r"\]\((my%20%28plots%29/[^)/]*\.png)\)", page)
    assert len(links) == 2


def test_without_plots_there_are_no_figures(eventful):
    assert "![" not in verdicts_markdown(eventful, plots=None)


def test_a_healthy_point_says_what_it_leaves_open(make_verdicts, make_report):
    page = verdicts_markdown(make_report(make_verdicts("p")), plots=None)
    assert "failed attempts were not looked at" in page.split("## ✓")[1]
    assert "| `p` | `save` | [0.970–1.051] | 1.010x |" in page


def test_a_point_without_operations_has_a_row(make_verdicts, make_report):
    point = make_verdicts("p").model_copy(update={"operations": (), "reason": "nothing ran"})
    page = verdicts_markdown(make_report(point), plots="plots")
    assert "| `p` | – | – | – | ✓ PASS | nothing ran failed attempts" in page
    assert "![" not in page


def test_names_that_differ_have_files_that_differ(make_operation, make_verdicts, make_report):
    operations = [make_operation(name, blocks=1) for name in ("a/b", "a|b", "../x")]
    page = verdicts_markdown(make_report(make_verdicts("p", *operations)), plots="plots")
    files = re.findall(r"\(plots/(.*)\.png\)", page)
    assert len(set(files)) == 4
    assert not any("/" in file for file in files)
