"""Pages in a headless Chromium: sorting, filtering, keyboard, width, and nothing loaded."""

import pytest

from tests.support.browser import headless
from tests.support.large_sweep import large_sweep  # noqa: F401
from tests.support.paired_runs import make_paired_run  # noqa: F401

pytestmark = pytest.mark.nightly

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser():
    with headless() as started:
        yield started


@pytest.fixture
def pages(once, tmp_path_factory, large_sweep):
    """The pages of every kind, as files by name."""

    def make():
        folder = tmp_path_factory.mktemp("pages")
        found = {
            **large_sweep,
        }
        files = {}
        for name, text in found.items():
            files[name] = folder / f"{name}.html"
            files[name].write_text(text, encoding="utf-8")
        return files

    return once("pages for a browser", make)


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", ["report", "best"])
def test_a_page_fits_and_has_no_problem(browser, pages, name, width):
    browser.open(pages[name], width=width, dark=width == 390)
    # What is folded must fit, too.
    browser.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert browser.run(OVERFLOW) == 0
    assert browser.problems == []


def values(browser, table, column):
    rows = f"document.querySelectorAll('table.sorts')[{table}].tBodies[0].rows"
    return browser.run(
        f"[...{rows}].filter(row => !row.matches('.point,.remark') && !row.hidden)"
        f".map(row => row.cells[{column}].textContent)"
    )


def click(browser, table, heading):
    browser.run(
        f"[...document.querySelectorAll('table.sorts')[{table}].querySelectorAll('th button')]"
        f".find(each => each.textContent === '{heading}').click()"
    )


def seconds(text):
    number, unit = text.replace("\xa0", " ").split()
    return float(number) * {"ms": 1e-3, "s": 1}[unit]


def of_operations(browser):
    """Returns the place of the table of operations among those that can be sorted."""
    return browser.run(
        "[...document.querySelectorAll('table.sorts')]"
        ".findIndex(each => each.querySelector('th').textContent === 'point'"
        " && each.textContent.includes('repeats'))"
    )


def test_a_heading_sorts_by_the_numbers_not_by_their_text(browser, pages):
    browser.open(pages["report"])
    table = of_operations(browser)
    before = values(browser, table, 0)
    click(browser, table, "median")
    rising = [seconds(text) for text in values(browser, table, 2)]
    assert len(rising) == 200
    assert rising == sorted(rising)
    click(browser, table, "median")
    assert [seconds(text) for text in values(browser, table, 2)] == sorted(rising, reverse=True)
    found = f"document.querySelectorAll('table.sorts')[{table}]"
    falling = browser.run(f"{found}.querySelector('[aria-sort=descending]').textContent")
    assert falling == "median"
    click(browser, table, "median")
    assert values(browser, table, 0) == before


def test_choices_and_words_filter_every_table(browser, pages):
    browser.open(pages["report"])
    table = of_operations(browser)
    browser.run(
        "const [search] = document.querySelectorAll('.filter input');"
        "const label = [...document.querySelectorAll('.filter label')]"
        ".find(each => each.textContent.startsWith('use_zarr3'));"
        "label.querySelector('select').value = 'false';"
        "search.value = 'use_ocdbt=True 1024,';"
        "search.dispatchEvent(new Event('input', { bubbles: true }))"
    )
    shown = values(browser, table, 0)
    assert len(shown) == 2
    assert all("use_zarr3=False" in name for name in shown)
    assert browser.run("document.querySelector('.filter output').value") == "2 of 200 points"
    assert "use_zarr3=false" in browser.run("location.hash")
    assert browser.problems == []


def test_keys_reach_headings_and_the_values_of_plots(browser, pages):
    browser.open(pages["report"])
    browser.run("document.querySelector('table.sorts th button').focus()")
    browser.press("Enter")
    assert browser.run("document.querySelector('[aria-sort=ascending]') !== null")
    browser.run("document.querySelector('svg.plot').focus()")
    first = browser.run("document.querySelector('.bubble').textContent")
    browser.press("ArrowDown")
    assert browser.run("document.querySelector('.bubble').textContent") not in ("", first)
    browser.press("Escape")
    assert browser.run("document.querySelector('.bubble').hidden")


def test_print_fits_paper_and_has_no_controls_but_light_colours(browser, pages):
    browser.open(pages["report"], width=794, media="print")
    assert browser.run(OVERFLOW) == 0
    browser.open(pages["report"], width=794, dark=True, media="print")
    assert browser.run(OVERFLOW) == 0
    style = "getComputedStyle(document.body)"
    assert browser.run(f"{style}.backgroundColor") in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    assert browser.run("getComputedStyle(document.querySelector('.filter')).display") == "none"
