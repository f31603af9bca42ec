"""One document on a terminal, as Markdown and as a page, whatever the texts of others are."""

import re

import pytest
from markdown_it import MarkdownIt

from orbax_bench_core import pages
from tests.support.pages import Outline, assert_whole
from tests.support.shown import terminal

NASTY = "<script>alert(1)</script>|[red]&amp; *x* ![y](https://h/y) ::error::z \x1b[2J `a"


def document(*elements, **fields):
    headline = pages.Callout("PASS", NASTY, "good")
    return pages.Document(**{"about": NASTY, "headline": headline, "summary": elements, **fields})


def chart(*marks, **fields):
    x = pages.axis("save", 0, 10, "{:g}".format)
    y = pages.named_axis(["one", "two"])
    return pages.Chart(**{"title": NASTY, "said": NASTY, "x": x, "y": y, "marks": marks, **fields})


EVERY = (
    pages.Text(NASTY, items=(NASTY,)),
    pages.Code(NASTY, NASTY),
    pages.Table(
        (pages.Column(NASTY), pages.Column("n", "number"), pages.Column("c", "code")),
        (
            pages.Row(
                (NASTY, NASTY, pages.Cell(NASTY, "bad", "a b/verdicts.html")), NASTY, dim=True
            ),
        ),
    ),
    chart(
        pages.Mark("band", ((1, 0), (4, 1)), "good", NASTY),
        pages.Mark("bar", ((1, 0), (4, 1)), "c1", NASTY),
        pages.Mark("whisker", ((1, 0), (4, 0)), "bad", NASTY),
        pages.Mark("line", ((0, 0), (10, 1)), "dim", NASTY, dashed=True),
        pages.Mark("dots", ((5, 1), (6, 1)), "unsure", NASTY, hollow=True),
        pages.Mark("tick", ((5, 1),), "plain", NASTY),
    ),
    pages.Details(NASTY, (pages.Section(NASTY, (pages.Text(NASTY),)),)),
)


def test_a_page_is_whole_and_runs_and_loads_nothing():
    page = pages.to_html(document(*EVERY, following=pages.Code("x", NASTY)))
    assert_whole(page)
    assert set(Outline(page).addresses) == {"a b/verdicts.html"}
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert "\x1b" not in page
    assert page.count("alert(1)") == page.count("&lt;script&gt;alert(1)&lt;/script&gt;")


@pytest.mark.parametrize(
    "href", ["javascript:alert(1)", "https://h/x", "//h/x", "/etc/passwd", "\\\\h\\x"]
)
def test_only_files_next_to_the_page_are_linked_to(href):
    table = pages.Table((pages.Column("a"),), (pages.Row((pages.Cell("x", href=href),)),))
    assert "<a " not in pages.to_html(document(table))


def test_markdown_has_no_markup_of_others_and_gives_no_orders():
    text = pages.to_markdown(document(*EVERY))
    assert not re.search("^::error", text, re.MULTILINE)
    page = MarkdownIt("commonmark").enable("table").render(text)
    found = Outline(page.replace("<hr />", ""))
    assert found.addresses == ["a%20b/verdicts.html"]
    assert {"script", "img", "em"}.isdisjoint(found.tags)
    whole = " ".join(found.text.split())
    assert whole.count("<script>alert(1)</script>|[red]&amp; *x* ![y](https://h/y)") == 16


def test_a_line_of_markdown_begins_no_other_block():
    said = pages.to_markdown(document(pages.Text("# a"), pages.Text("- b"), pages.Text("> c")))
    assert "\n\\# a\n\n\\- b\n\n\\> c\n" in said


@pytest.mark.parametrize(
    ("name", "code"), [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a|b", "`a\\|b`")]
)
def test_code_of_a_table_holds_any_name(name, code):
    table = pages.Table((pages.Column("n", "code"),), (pages.Row((name,)),))
    assert f"\n| {code} |\n" in pages.to_markdown(document(table))


def test_a_terminal_shows_the_summary_then_the_answer_then_the_command_to_run():
    table = pages.Table(
        (pages.Column("n", "number"),), tuple(pages.Row((f"{n}",)) for n in range(30))
    )
    headline = pages.Callout("PASS", "nothing is slower", "good")
    shown = document(
        table,
        headline=headline,
        following=pages.Code("orbax-bench report x", "Why:"),
        details=(pages.Details("All", (pages.Text("the rest"),)),),
    )
    brief = terminal(shown).splitlines()
    assert brief[-5:] == [
        "20 more rows: with --details",
        "",
        "✓ PASS: nothing is slower",
        "Why:",
        "Next: orbax-bench report x",
    ]
    whole = terminal(shown, details=True)
    assert {"29", "the rest"} <= {line.strip() for line in whole.splitlines()}


@pytest.mark.parametrize("write", [pages.to_html, pages.to_markdown])
def test_a_page_says_what_to_do_before_the_figures(write):
    text = write(document(pages.Text("a figure"), following=pages.Code("orbax-bench x", "Why:")))
    assert text.index("orbax-bench x") < text.index("a figure")


def test_no_line_of_a_terminal_ends_between_a_number_and_its_unit():
    lines = [terminal(document(pages.Text("saves: 1 → 2.7 ms")), width=n) for n in range(11, 20)]
    assert all("1 → 2.7 ms" in said for said in lines)


def test_no_cell_of_a_narrow_terminal_is_cut():
    row = pages.Row(("1.5 MiB (1.25 to 1.75)", "a long name of an option", "INCONCLUSIVE"), "group")
    columns = (pages.Column("per save", "number"), pages.Column("is"), pages.Column("verdict"))
    said = terminal(document(pages.Table(columns, (row,))), width=30)
    for word in ("1.5", "1.75)", "option"):
        assert word in said
    letters = re.sub(r"\s", "", said)
    assert "…" not in letters


def test_a_row_that_would_lose_a_cell_is_refused():
    with pytest.raises(ValueError, match="2 cells"):
        pages.Table((pages.Column("a"), pages.Column("b")), (pages.Row(("1",)),))


def test_what_has_no_content_is_not_shown():
    empty = pages.Table((pages.Column("a"),), ())
    shown = document(pages.Section("Nothing", (pages.Details("Neither", (empty, pages.Text())),)))
    for text in (pages.to_html(shown), pages.to_markdown(shown), terminal(shown)):
        assert "Nothing" not in text
        assert "Neither" not in text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        ((1.62, 1.51, 1.74), "+62 % (+51 to +74 %)"),
        ((0.95, 0.9, 1.01), "-5 % (-10 to +1 %)"),
        ((1.1, None, 1.2), "+10 % (at most +20 %)"),
        ((1.1, 1.05, float("inf")), "+10 % (at least +5 %)"),
        ((1.1,), "+10 %"),
        ((4.2, 2.5, 5.5), "4.2x (2.5 to 5.5x)"),
        ((0.2, 0.1, 0.3), "-80 % (-90 to -70 %)"),
        ((1.1, 0.2, 3.4), "1.1x (0.2 to 3.4x)"),
        ((0.0042,), "0.0042x"),
    ],
)
def test_a_change_is_in_percent_and_beyond_threefold_a_ratio(ratio, text):
    assert pages.change(*ratio) == text


def _luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * each for each in colour[1:])
    parts = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    linear = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_text_has_contrast(scheme):
    """4.5 for text and 3 for drawings, as the Web Content Accessibility Guidelines (AA) ask."""
    found = re.findall(r":root \{([^}]*)\}", pages.to_html(document()))
    colours = dict(re.findall(r"--([\w]+): (#\w+)", found[scheme]))
    for name, colour in colours.items():
        if name in ("page", "line", "soft"):
            continue
        low, high = sorted(map(_luminance, (colour, colours["page"])))
        assert (high + 0.05) / (low + 0.05) >= (3 if re.fullmatch(r"c\d", name) else 4.5), name
