"""One document as Markdown, as a page and on a terminal."""

import io
import re

import pytest
from rich.console import Console

from orbax_bench_core.document import (
    ByWidth,
    Cell,
    Column,
    Details,
    Document,
    Facts,
    Figure,
    Group,
    Heading,
    Items,
    Only,
    Paragraph,
    Row,
    Section,
    Span,
    Table,
    figures,
    print_document,
    to_html,
    to_markdown,
    write_figures,
)
from tests.support.pages import assert_whole

NASTY = "<script>alert(1)</script>|[red]&amp; *x*"


def drawing():
    figure = figures.new_figure(1, 1)
    figure.subplots()
    return figure


def document(*elements, **fields):
    return Document(title=NASTY, elements=elements, **fields)


def shown(*elements, width=80, terminal=False, **fields):
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    print_document(document(*elements, **fields), console)
    return console.file.getvalue()


def body(*elements):
    return to_html(document(*elements)).split("<body>\n")[1].split("\n</body>")[0]


TABLE = Table(
    (Column("name"), Column("n", "number")),
    groups=(
        Group(Span("first"), (Row(("a|b", "1")), Row(("c", "20"))), keys=("first",)),
        Group(Span("second"), (Row(("ddd", "3"), dim=True),), keys=("second",)),
    ),
    keys=("group",),
)


def test_markdown_escapes_what_would_be_markup():
    said = to_markdown(document(Paragraph(NASTY)))
    assert said == "&lt;script>alert(1)&lt;/script>|\\[red\\]&amp;amp; \\*x\\*\n"


def test_markdown_can_leave_names_as_they_are():
    assert to_markdown(document(Paragraph(NASTY), escape=False)) == f"{NASTY}\n"


@pytest.mark.parametrize(
    ("name", "code"), [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a|b", "`a\\|b`")]
)
def test_code_of_markdown_holds_any_name(name, code):
    assert to_markdown(document(Paragraph(Span(name, code=True)))) == f"{code}\n"


def test_a_table_of_markdown_tells_each_group_once():
    assert to_markdown(document(TABLE)).splitlines() == [
        "| group | name | n |",
        "|---|---|---:|",
        "| first | a\\|b | 1 |",
        "|  | c | 20 |",
        "| second | ddd | 3 |",
    ]


def test_a_terminal_lines_up_the_columns_of_all_groups():
    assert shown(TABLE).splitlines() == [
        "  name   n",
        "first",
        "  a|b    1",
        "  c     20",
        "second",
        "  ddd    3",
    ]


def test_html_has_a_heading_row_per_group():
    assert body(TABLE).count('<tr class="point">') == 2
    assert body(TABLE).count('<tr class="dim">') == 1


def test_html_says_when_a_table_is_empty():
    assert "Nothing passed." in body(Table((Column("a"),), empty="Nothing passed."))


def test_a_page_is_whole_whatever_its_text():
    elements = (
        Heading(NASTY, level=1),
        Paragraph(NASTY, "dim", mark=Span("!", "bad")),
        Facts(((NASTY, NASTY),)),
        Details(NASTY, (Items((NASTY,)),), open=True),
        Table((Column(NASTY),), (Row((Cell(NASTY, (NASTY,)),), bar=(1, 2, 3)),), bars="range"),
        Figure(NASTY, drawing),
    )
    page = to_html(document(*elements))
    assert_whole(page)
    assert "<script>" not in page


def test_only_sentences_have_code_in_backticks():
    assert body(Paragraph("see `x`")) == "<p>see <code>x</code></p>"
    assert body(Paragraph(Span("p[`x`]"))) == "<p>p[`x`]</p>"


def test_a_page_has_colours_for_light_and_dark():
    page = to_html(document(TABLE))
    light, dark = page.split("prefers-color-scheme: dark")
    for variable in set(re.findall(r"var\((--[a-z]+)", page)):
        assert f"{variable}: #" in light
        assert f"{variable}: #" in dark


def test_a_section_is_left_out_when_nothing_of_it_is_shown():
    empty = Section("Notes", (Only("html", (Paragraph("x"),)),), lead=(Paragraph("lead"),))
    assert to_markdown(document(Heading("Top"), empty)) == "## Top\n"
    assert body(empty) == "<h2>Notes</h2>\n<p>lead</p>\n<p>x</p>"


def test_a_terminal_shows_the_brief_and_no_figures():
    assert shown(Paragraph("page"), brief=(Paragraph("brief"), Figure("", drawing))) == "brief\n"


@pytest.mark.parametrize(
    ("width", "terminal", "seen"),
    [(80, True, "narrow"), (120, True, "wide"), (120, False, "narrow")],
)
def test_a_wide_terminal_has_more(width, terminal, seen):
    element = ByWidth(100, (Paragraph("wide"),), (Paragraph("narrow"),), terminal=True)
    assert shown(element, width=width, terminal=terminal) == f"{seen}\n"


def test_text_is_no_markup_of_a_terminal():
    assert shown(Paragraph("[red]a[/] :smile:", mark="[b]")) == "[b] [red]a[/] :smile:\n"


def test_a_hanging_line_is_wrapped_under_itself_and_kept_whole_in_a_log():
    line = Paragraph("one two three four", mark="!", indent=2, fold="hanging")
    told = [part.rstrip() for part in shown(line, width=14, terminal=True).splitlines()]
    assert told == ["  ! one two", "    three four"]
    assert shown(line, width=14) == "  ! one two three four\n"


def test_files_are_those_that_markdown_links_to(tmp_path):
    with_file = Figure("a [figure]", drawing, file="a.png")
    found = document(Only("markdown", (with_file,)), Only("html", (Figure("b", drawing),)))
    assert [path.name for path in write_figures(found, tmp_path)] == ["a.png"]
    assert to_markdown(found, figures="my plots/") == "![a \\[figure\\]](my%20plots/a.png)\n"
    assert to_markdown(found) == "\n"
