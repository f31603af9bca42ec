"""The look of figures."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from orbax_bench_core.document import figures


def drawn(text="a label"):
    with figures.style():
        figure = figures.new_figure(4, 2)
        axes = figure.subplots()
        axes.plot([1, 2], [3, 4], "o-", color=figures.BAR, label=text)
        axes.set_title(text)
        axes.legend()
    return figure


@pytest.fixture(scope="module")
def svg():
    return figures.svg(drawn(), title="what it shows")


def test_svg_is_one_element_with_a_title_for_those_who_cannot_see_it(svg):
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("role") == "img"
    assert root.get("aria-label") == root[0].text == "what it shows"


def test_svg_takes_its_colours_from_the_page_and_nothing_else(svg):
    assert re.findall(r": *#[0-9a-f]{3,6}", svg) == []
    assert "var(--bar)" in svg
    assert set(re.findall(r"https?://[^\"<]*", svg)) == {"http://www.w3.org/2000/svg"}
    assert "<style" not in svg


def test_everything_that_an_svg_refers_to_is_in_it(svg):
    ids = re.findall(r'\sid="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(|href=")#([^")]+)', svg)) == set(ids)


def test_two_figures_share_no_id():
    one, other = (figures.svg(drawn(), title=title) for title in ("one", "other"))
    ids = [set(re.findall(r'\sid="([^"]+)"', svg)) for svg in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_the_same_figure_is_the_same_svg():
    assert figures.svg(drawn()) == figures.svg(drawn())


@pytest.mark.parametrize("name", ['<script>&"', "$a$ and $b$", "漢字", "#3a78c2 url(#x)"])
def test_a_nasty_label_or_title_is_shown_as_it_is(name):
    root = ElementTree.fromstring(figures.svg(drawn(name), title=name))
    assert [found.text for found in root.iter()].count(name) == 3
    assert (root.get("aria-label"), root[0].text) == (name, name)


@pytest.mark.parametrize(
    ("given", "longest", "written"),
    [("short", 5, "short"), ("abcdefghij", 5, "ab…ij"), ("abcdefghij", 6, "abc…ij")],
)
def test_a_long_name_loses_its_middle(given, longest, written):
    assert figures.shorten(given, longest) == written


def test_a_label_is_one_printable_line():
    assert figures.label("a\nb\x1b[31m\tc") == "a b [31m c"


@pytest.mark.parametrize("marker", ["o", "s", "^", "D", "x"])
@pytest.mark.parametrize("fill", ["full", "none"])
def test_marks_of_every_kind_are_drawn(marker, fill):
    with figures.style():
        figure = figures.new_figure(2, 1)
        axes = figure.subplots()
        axes.plot([1, 2, 3], [1, 2, 3], marker, color=figures.PASS, fillstyle=fill)
        axes.set(xticks=[], yticks=[])
    root = ElementTree.fromstring(figures.svg(figure))
    space = "{http://www.w3.org/2000/svg}"
    uses = len(root.findall(f".//{space}use"))
    strokes = sum(path.get("d").count("h0") for path in root.iter(f"{space}path"))
    assert (uses, strokes) in {(3, 0), (0, 3)}
    assert strokes == 3 * (marker in "os" and fill == "full")
