"""One document as Markdown, as a page and on a terminal."""

import base64
import hashlib
import io
import json
import re

import pytest
from rich.console import Console

from orbax_bench_core.document import (
    Cell,
    Code,
    Column,
    Details,
    Document,
    Facts,
    Figure,
    Filter,
    Group,
    Heading,
    Items,
    Legend,
    Mark,
    Only,
    Paragraph,
    Plot,
    Row,
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
    return to_html(document(*elements)).split("<body>\n")[1].split("\n<script>")[0]


PLOT = Plot(
    NASTY,
    (
        Mark("band", ((1, 15), (40, 85))),
        Mark("dots", ((1, 50), (40.25, 50)), "bad", NASTY),
        Mark("ticks", ((20, 0),), "plain"),
        Mark("line", ((0, 0), (50, 100))),
    ),
)
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


@pytest.mark.parametrize(
    ("name", "code"), [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a|b", "`a\\|b`")]
)
def test_code_of_markdown_holds_any_name(name, code):
    assert to_markdown(document(Paragraph(Span(name, code=True)))) == f"{code}\n"


APART = Table(
    (Column("rank", "number"), Column("options", apart=True), Column("median", "number")),
    (
        Row(("1", "use_ocdbt=true, use_compression=false", "1 s")),
        Row(("10", "x=1", "12.5 s")),
    ),
)


def test_a_column_stands_apart_where_a_terminal_has_no_room_beside_the_others():
    assert [line.rstrip() for line in shown(APART, width=30).splitlines()] == [
        "rank   options          median",
        "─" * 30,
        "   1   use_ocdbt=true,",
        "       use_compression=false",
        "                           1 s",
        "  10   x=1              12.5 s",
    ]


@pytest.mark.parametrize("width", [23, 22])
def test_spare_columns_are_left_out_where_a_terminal_has_no_room_for_all(width):
    columns = (*APART.columns[:2], Column("median", "number", spare=True))
    told = shown(Table(columns, (Row(("10", Span("x=1"), Cell("12.5 s"))),)), width=width)
    assert ("12.5 s" in told) == (width == 23)
    assert ("Not shown, because the terminal is narrow: median." in told) == (width == 22)
    assert "x=1" in told


def test_a_page_is_whole_whatever_its_text():
    elements = (
        Heading(NASTY, level=1),
        Paragraph(NASTY, "dim", mark=Span("!", "bad")),
        Facts(((NASTY, NASTY),)),
        Details(NASTY, (Items((NASTY,)),), open=True),
        Table((Column(NASTY),), (Row((Cell(NASTY, (NASTY,)),), plot=PLOT, key=NASTY),), plots="p"),
        Table((Column(NASTY),) * 3, (Row((NASTY,) * 3),), sorts=True),
        Legend((("c1", NASTY),)),
        Filter(NASTY, {NASTY: NASTY}, {NASTY: {NASTY: NASTY}}),
        Figure(NASTY, drawing),
    )
    page = to_html(document(*elements))
    assert_whole(page)
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 2


def test_a_terminal_shows_the_brief_and_no_figures():
    assert shown(Paragraph("page"), brief=(Paragraph("brief"), Figure("", drawing))) == "brief\n"


def test_text_is_no_markup_of_a_terminal():
    assert shown(Paragraph("[red]a[/] :smile:", mark="[b]")) == "[b] [red]a[/] :smile:\n"


def test_a_hanging_line_is_wrapped_under_itself_and_kept_whole_in_a_log():
    line = Paragraph("one two three four", mark="!", indent=2, fold="hanging")
    told = [part.rstrip() for part in shown(line, width=14, terminal=True).splitlines()]
    assert told == ["  ! one two", "    three four"]
    assert shown(line, width=14) == "  ! one two three four\n"


def test_sentences_are_broken_between_words_on_a_terminal_and_nowhere_in_a_log():
    elements = (
        Paragraph("one two three four"),
        Heading("one two three four"),
        Items(("one two three four",)),
        Facts((("is", "one two three four"), ("was", "five"))),
    )
    told = [part.rstrip() for part in shown(*elements, width=14, terminal=True).splitlines()]
    assert told == [
        *("one two three", "four") * 2,
        *("- one two", "  three four"),
        *("  is   one two", "       three", "       four", "  was  five"),
    ]
    log = shown(*elements, width=14).splitlines()
    assert log == ["one two three four"] * 2 + [
        "- one two three four",
        "  is   one two three four",
        "  was  five",
    ]


def test_code_and_what_is_to_be_whole_are_broken_nowhere():
    elements = (Code("a = one two"), Paragraph("one two", fold="whole"))
    assert shown(*elements, width=8, terminal=True).splitlines() == ["  a = one two", "one two"]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("a[one=1,two=2,b=3] id", ["a[one=1,", "two=2,b=3]", "id"]),
        ("x a[one=1,two=2]", ["x a[one=1,", "two=2]"]),
        ("abcdefghijklmno", ["abcdefghij", "klmno"]),
        ("it took 12 ms, 5 %; 3 s and more", ["it took", "12 ms,", "5 %; 3 s", "and more"]),
    ],
)
def test_a_name_that_is_longer_than_a_line_is_broken_behind_a_comma(name, lines):
    assert shown(Paragraph(Span(name)), width=10, terminal=True).splitlines() == lines


def test_names_of_groups_are_broken_behind_a_comma_on_a_terminal():
    columns = (Column("name"), Column("n", "number"))
    table = Table(columns, groups=(Group(Span("a[one=1,two=2]"), (Row(("c", "2")),)),))
    assert shown(table, width=10, terminal=True).splitlines() == [
        "  name  n",
        "a[one=1,",
        "  two=2]",
        "  c     2",
    ]


def test_beside_a_long_mark_there_is_no_room():
    line = Paragraph("one two three four five", mark="m" * 30, indent=2, fold="hanging")
    told = shown(line, width=40, terminal=True).splitlines()
    assert told == ["  " + "m" * 30, "    one two three four five"]


def test_files_are_those_that_markdown_links_to(tmp_path):
    with_file = Figure("a [figure]", drawing, file="a.png")
    found = document(Only("markdown", (with_file,)), Only("html", (Figure("b", drawing),)))
    assert [path.name for path in write_figures(found, tmp_path)] == ["a.png"]
    assert to_markdown(found, figures="my plots/") == "![a \\[figure\\]](my%20plots/a.png)\n"
    assert to_markdown(found) == "\n"


def test_a_page_lets_nothing_be_loaded_and_only_its_own_script_run():
    page = to_html(document(TABLE))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    script = page.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}';" in policy


@pytest.mark.parametrize(
    ("address", "linked"),
    [("run/a.html", True), ("https://x/", True), ("file:///a", True), ("javascript:1", False)],
)
def test_only_addresses_of_pages_and_files_are_links(address, linked):
    assert ("<a " in body(Paragraph(Span("x", href=address)))) == linked


def test_markdown_links_to_files_of_any_name():
    said = to_markdown(document(Paragraph(Span("a page", href="a b/(c).html"))))
    assert said == "[a page](<a%20b/%28c%29.html>)\n"


def test_a_plot_says_its_values_to_those_who_cannot_see_it():
    table = Table(
        (Column("a"),), (Row(("x",), plot=Plot("1 s, 2 s", PLOT.marks)),), plots="repeats"
    )
    shown = body(table)
    assert 'role="img"' in shown
    assert "<title>1\xa0s, 2\xa0s</title>" in shown
    assert 'd="M10 50h0M402 50h0"' in shown
    assert to_markdown(document(table)).splitlines() == ["| a |", "|---|", "| x |"]


def test_every_cell_says_its_column_on_a_narrow_page():
    page = to_html(document(Table((Column("a"), Column('b"</style>'), Column("c")))))
    labels = re.findall(r"nth-child\((\d)\):not\(:empty\)::before \{ content: \"([^\"]*)\"", page)
    assert labels == [("2", r"b\22 \3c /style\3e  "), ("3", "c ")]


def test_rows_have_the_keys_by_which_a_filter_hides_them():
    names = {"k1": "one", "k2": "two"}
    shown = body(
        Filter("points", names, {"size": {"k1": "1", "k2": "</script>"}}),
        Table((Column("a"),), (Row(("x",), key="k1"), Row(("y",)))),
    )
    assert '<tr data-k="k1">' in shown
    found = re.search(r'application/json">(.*?)</script>', shown)[1]
    assert json.loads(found)["choices"] == {"size": {"k1": "1", "k2": "</script>"}}


def _contrast(one, other):
    """Returns the contrast of two colours by WCAG 2.2, from 1 to 21."""

    def luminance(colour):
        parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(share * p for share, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_the_contrast_that_reading_needs(scheme):
    colours = dict(re.findall(r"(--\w+): (#\w{6});", figures.variables(scheme)))
    page = colours.pop("--page")
    del colours["--line"]  # says nothing
    least = {name: 3 if re.fullmatch(r"--c\d", name) else 4.5 for name in colours}
    assert {name: _contrast(colour, page) for name, colour in colours.items()} == {
        name: pytest.approx(21, abs=21 - least[name]) for name in colours
    }


PLANTED = "<script>alert(1)</script>\x1b[2J\x9b2J\u202e\u2066[a](javascript:x)![b](http://c/d)"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(params=[True, False], ids=["escaped", "as they are"])
def planted(request):
    """A document that says what is planted in each way that there is."""
    return Document(
        title=PLANTED,
        elements=(
            Heading(PLANTED, level=1),
            Paragraph(PLANTED, mark=PLANTED),
            Paragraph(Span(PLANTED, code=True)),
            Paragraph(Span(PLANTED, href="javascript:alert(1)")),
            Code(PLANTED),
        ),
        escape=request.param,
    )


def test_a_page_has_no_element_of_theirs(planted):
    page = to_html(planted)
    assert "<script>alert" not in page
    assert 'javascript:alert(1)"' not in page
    assert CONTROL.search(page) is None


def test_a_card_has_no_tag_link_or_picture_of_theirs(planted):
    card = to_markdown(planted)
    assert CONTROL.search(card) is None
    prose = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", "", card)
    assert "<script" not in prose
    assert re.search(r"(?<!\\)\[a(?<!\\)\]\(", prose) is None
    assert re.search(r"!\[b(?<!\\)\]\(", prose) is None


@pytest.mark.parametrize("order", ["::error::no", "  ::error file=a::no", "##[error]no"])
def test_no_line_of_markdown_is_an_order_to_the_log_of_ci(order):
    """Logs of CI show a report, of which GitHub Actions obeys a line that begins so."""
    elements = (Paragraph(f"a\n{order}"), Code(f"{order}\n\r{order}"), Items((order,)))
    lines = to_markdown(Document(title=order, elements=elements)).splitlines()
    assert [line for line in lines if line.lstrip().startswith(("::", "##["))] == []
