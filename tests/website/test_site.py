"""The site: links, anchors, pictures, navigation, and the strict build."""

import re
import subprocess
import sys

import pytest
import yaml

from tests.support.blocks import ROOT
from website import charts, links, site
from website.pictures import first_figure


def test_no_link_of_any_page_is_dead():
    assert site.problems() == []


def test_every_page_is_in_the_navigation():
    pages = {str(site.place_of(one)) for one in (ROOT / "docs").rglob("*.md")}

    def leaves(item):
        if isinstance(item, str):
            yield item
        else:
            for one in item.values() if isinstance(item, dict) else item:
                yield from leaves(one)

    shown = list(leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert pages - set(shown) == set(), "name it in mkdocs.yml"
    assert len(shown) == len(set(shown))


@pytest.fixture
def page(tmp_path):
    """Writes a page into a small checkout; returns what is wrong with it."""

    def write(text):
        (tmp_path / "there.md").write_text("# A heading, with `code`\n\n## Twice\n\n## Twice\n")
        (tmp_path / "page.md").write_text(text)
        return list(links.faults(tmp_path / "page.md", tmp_path))

    return write


@pytest.mark.parametrize(
    "text",
    [
        "[a](there.md)",
        "[a](there.md#a-heading-with-code)",
        "[a](there.md#twice_1)",
        "[`a`](there.md)",
        "`[a](nowhere.md)`",
        "```text\n[a](nowhere.md)\n```",
        "[a](https://example.org/nowhere)",
        "![a picture](there.md)",
        "[over two\nlines](there.md)",
    ],
)
def test_good_links(page, text):
    assert page(text) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a](nowhere.md)", "nowhere.md is not there"),
        ("[a](there.md#nothing)", "there.md#nothing: the page has no such heading"),
        ("[a](#nothing)", "#nothing: the page has no such heading"),
        ("[a](../outside.md)", "../outside.md is not there"),
        ("![](there.md)", "the picture there.md has no text in its place"),
        ("[`a`](nowhere.md)", "nowhere.md is not there"),
    ],
)
def test_bad_links(page, text, said):
    assert page(text) == [f"page.md: {said}"]


def test_links_are_moved_and_code_is_not():
    text = "[`a`](x.md) and `[b](y.md)`\n\n```sh\n[c](z.md)\n```\n"
    assert links.rewritten(text, lambda target: f"moved/{target}") == text.replace(
        "(x.md)", "(moved/x.md)"
    )


def test_what_pages_link_to_becomes_a_page():
    assert str(site.place_of(ROOT / "docs" / "best.md")) == "best.md"
    assert str(site.place_of(ROOT / "README.md")) == "index.md"
    assert str(site.place_of(ROOT / "examples" / "tour.yaml")) == "source/examples/tour.yaml.md"
    assert str(site.place_of(ROOT / "images")) == "source/images/README.md"
    assert str(site.place_of(ROOT / "docs" / "launch")) == "source/docs/launch/index.md"


CHART = """
```mermaid
flowchart LR
  a[the first] -- then --> last
  subgraph box["for each point"]
    inner & more
  end
  a --> box
  box --> last
```
"""


def test_a_flowchart_becomes_a_drawing_that_needs_no_script():
    page = charts.drawn("before" + CHART.replace("inner & more", "inner") + "after")
    assert "mermaid" not in page
    assert re.findall(r">([^<>\n]+)</text>", page) == [
        "then", "the first", "for each point", "inner", "last",
    ]  # fmt: skip
    assert 'aria-label="A flowchart: the first to last; the first to for each point;' in page
    assert page.count('marker-end="url(#tip)"') == 3
    assert "\n\n" not in page.strip()  # it would end the drawing


def test_what_a_drawing_cannot_show_is_no_silent_gap():
    with pytest.raises(ValueError, match="not known: inner & more"):
        charts.drawn(CHART)


def test_a_figure_stands_alone():
    page = "<style>a {}</style><p>text</p><svg><path/></svg><svg></svg>"
    figure = first_figure(page)
    assert "<style>a {}</style>" in figure
    assert figure.endswith("<body class=figures><svg><path/></svg>")
    with pytest.raises(ValueError, match="no figure"):
        first_figure("<p>")


@pytest.mark.nightly
def test_the_site_builds_strictly():
    build = [sys.executable, "-m", "website", "build"]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    front = (ROOT / "dist" / "site" / "index.html").read_text()
    assert "source/examples/tour.yaml.html" in front
    assert 'alt="A verdict' in front
    for page in (ROOT / "dist" / "site").rglob("*.html"):
        # Neither a script, a style, a font nor a picture of another place: the site works offline.
        text = page.read_text()
        assert not re.search(r'\ssrc="?https?:|<link [^>]*href="?https?:[^>]*stylesheet', text), (
            page
        )
        assert "mermaid" not in re.findall(r'class="?([\w-]+)', text), page
    assert "use_ocdbt" in (ROOT / "dist/site/source/examples/tour.yaml.html").read_text()
