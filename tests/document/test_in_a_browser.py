"""Pages in a headless Chromium: sorting, filtering, keyboard, width, and nothing loaded."""

import pytest

from orbax_bench_core.analysis.verdicts import evidence_of, report, verdicts_document
from orbax_bench_core.document import to_html
from orbax_bench_core.exports.site import gather, site_document
from orbax_bench_core.records import Run
from tests.exports.site.conftest import nights  # noqa: F401 - fixtures
from tests.support.browser import headless
from tests.support.paired_runs import (  # noqa: F401
    make_nightly,
    make_paired_run,
    make_separate_run,
)

pytestmark = pytest.mark.nightly

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser():
    with headless() as started:
        yield started


@pytest.fixture
def pages(once, tmp_path_factory, nights, make_paired_run, make_point):
    """The pages of every kind, as files by name."""

    def make():
        folder = tmp_path_factory.mktemp("pages")
        pair = make_point(label="a=1", candidate=make_point(label="a=1"))
        run = make_paired_run(0, 1.5, pair=pair, blocks=8, folder="compared")
        info = run.read_info()
        judged = [evidence_of(pair, list(Run(run).repeats()), info)]
        found = {
            "verdicts": to_html(verdicts_document(report(info, judged))),
            "site": to_html(site_document(gather([str(nights)], most=60), run.root)),
        }
        files = {}
        for name, text in found.items():
            files[name] = folder / f"{name}.html"
            files[name].write_text(text, encoding="utf-8")
        return files

    return once("pages for a browser", make)


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", ["verdicts", "site"])
def test_a_page_fits_and_has_no_problem(browser, pages, name, width):
    browser.open(pages[name], width=width, dark=width == 390)
    # What is folded must fit, too.
    browser.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert browser.run(OVERFLOW) == 0
    assert browser.problems == []


def test_the_runs_of_one_suite_are_shown(browser, pages):
    browser.open(pages["site"])
    browser.run(
        "const select = document.querySelector('.filter select'); select.value = 'a sweep';"
        "select.dispatchEvent(new Event('input', { bubbles: true }))"
    )
    groups = "[...document.querySelectorAll('tbody')].filter(each => each.getClientRects().length)"
    assert "a suite" not in browser.run(f"{groups}.map(each => each.innerText).join(' ')")


def test_keys_reach_headings_and_the_values_of_plots(browser, pages):
    browser.open(pages["site"])
    browser.run("document.querySelector('table.sorts th button').focus()")
    browser.press("Enter")
    assert browser.run("document.querySelector('[aria-sort=ascending]').textContent") == "suite"
    browser.run("document.querySelector('svg.plot').focus()")
    assert "20 runs" in browser.run("document.querySelector('.bubble').textContent")
    browser.press("ArrowRight")
    assert "2026-03-" in browser.run("document.querySelector('.bubble').textContent")
    browser.press("ArrowDown")
    assert browser.run("document.activeElement.getAttribute('aria-label')").startswith("2 runs")
    browser.press("Escape")
    assert browser.run("document.querySelector('.bubble').hidden")


def test_print_fits_paper_and_has_no_controls_but_light_colours(browser, pages):
    browser.open(pages["verdicts"], width=794, media="print")
    assert browser.run(OVERFLOW) == 0
    browser.open(pages["report"], width=794, dark=True, media="print")
    assert browser.run(OVERFLOW) == 0
    style = "getComputedStyle(document.body)"
    assert browser.run(f"{style}.backgroundColor") in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    assert browser.run("getComputedStyle(document.querySelector('.filter')).display") == "none"
