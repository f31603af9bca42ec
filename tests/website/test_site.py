"""The site: links, anchors, pictures, navigation, and the strict build."""

import re
import subprocess
import sys

import pytest
import yaml

from tests.support.blocks import ROOT
from website import charts, links, site


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


def test_what_a_drawing_cannot_show_is_no_silent_gap():
    with pytest.raises(ValueError, match="not known: inner & more"):
        charts.drawn(CHART)


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
