"""Pages of answers in a headless Chromium: width, what is seen first, dark, paper, keyboard."""

import pytest

from orbax_bench_core.analysis.async_study import study_document
from orbax_bench_core.analysis.history import history_document
from orbax_bench_core.analysis.recovery import Recovery, recovery_document
from orbax_bench_core.pages import to_html
from tests.analysis.async_study.conftest import eventful, study_of  # noqa: F401
from tests.analysis.history.conftest import build, changed  # noqa: F401
from tests.support.async_runs import make_pair, make_saves  # noqa: F401
from tests.support.browser import headless
from tests.support.large_sweep import large_sweep  # noqa: F401
from tests.support.paired_runs import make_nightly, make_paired_run  # noqa: F401

pytestmark = pytest.mark.nightly

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
FOLDED = "document.querySelectorAll('details').forEach(each => { each.open = true; })"
CUT = """
[...document.querySelectorAll('.chart span')].filter(each => {
  const box = each.getBoundingClientRect();
  return box.width > 0 && (box.left < 0 || box.right > document.documentElement.clientWidth);
}).map(each => each.textContent)
"""


@pytest.fixture(scope="module")
def browser():
    with headless() as started:
        yield started


def drilled(name):
    seconds = {"notice": 0.1, "start": 6.4, "restore": 0.5, "first_step": 2.0, "recovery": 9.0}
    phases = [
        {"phase": phase, "n": 10, "median": median, "fastest": median, "slowest": 2 * median}
        for phase, median in seconds.items()
    ]
    return {
        "series_id": name,
        "name": f"training_job[{name},mesh=fsdp2,ckpt=params]",
        "arm": None,
        "drills": 10,
        "recovered": 10,
        "verified": True,
        "phases": phases,
        "steps_lost": [3] * 10,
        "uncommitted": [0] * 10,
        "peers_s": [],
        "reasons": [],
    }


@pytest.fixture
def files(once, tmp_path_factory, changed, eventful, large_sweep):
    """A page of each kind of drawing, as files by name."""

    def make():
        folder = tmp_path_factory.mktemp("pages")
        names = [f"compilation_cache=off,save_interval_steps={each}" for each in range(3)]
        series = list(map(drilled, names))
        drills = Recovery.model_validate({"run_id": "r", "suite": "s", "series": series})
        documents = {
            "recovery": recovery_document(drills, "out"),
            "history": history_document(changed),
            "study": study_document(eventful),
        }
        texts = {name: to_html(document) for name, document in documents.items()}
        found = {}
        for name, text in {**texts, **large_sweep}.items():
            found[name] = folder / f"{name}.html"
            found[name].write_text(text, encoding="utf-8")
        return found

    return once("pages of answers for a browser", make)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 500, 360])
@pytest.mark.parametrize("name", ["recovery", "history", "study", "best", "report"])
def test_a_page_fits_and_shows_the_answer_first(browser, files, name, width, dark):
    browser.open(files[name], width=width, dark=dark)
    assert browser.run("document.querySelector('h1').getBoundingClientRect().top") < 200
    assert browser.run("document.querySelector('.chart').getBoundingClientRect().top") < 400
    browser.run(FOLDED)
    assert browser.run(OVERFLOW) == 0
    assert browser.run(CUT) == []
    assert browser.problems == []
    # The page of a reader who asked for dark has light text on it.
    colour = browser.run("getComputedStyle(document.body).color")
    assert (sum(map(int, colour[4:-1].split(","))) > 384) == dark


def test_paper_has_light_colours_and_fits(browser, files):
    browser.open(files["study"], width=794, dark=True, media="print")
    assert browser.run(OVERFLOW) == 0
    colour = browser.run("getComputedStyle(document.body).color")
    assert sum(map(int, colour[4:-1].split(","))) < 384


def test_keys_reach_every_fold_and_a_picture_is_told(browser, files):
    browser.open(files["study"])
    folds = browser.run("document.querySelectorAll('summary').length")
    reached = set()
    for _ in range(3 * folds + 3):
        browser.press("Tab")
        reached.add(browser.run("document.activeElement.textContent"))
    names = browser.run("[...document.querySelectorAll('summary')].map(each => each.textContent)")
    assert set(names) <= reached
    told = browser.run("document.querySelector('[role=img]').getAttribute('aria-label')")
    assert told.replace("\xa0", " ") == "57 % at 1M parameters"
