"""Pages of answers in a headless Chromium: width, what is seen first, dark, paper, keys, axe."""

import importlib.util
from pathlib import Path

import pytest

from orbax_bench_core.analysis.async_study import study_document
from orbax_bench_core.analysis.history import history_document
from orbax_bench_core.analysis.recovery import Recovery, recovery_document
from orbax_bench_core.analysis.releases import ReleaseSearch, search_document
from orbax_bench_core.analysis.verdicts import verdicts_document
from orbax_bench_core.exports.site import write_site
from orbax_bench_core.limits import PROBES, limits_document
from orbax_bench_core.lineage import Finding, lineage_document
from orbax_bench_core.pages import to_html
from orbax_bench_core.plan import plan_source, plans_document, read_source
from orbax_bench_core.plan.goodput import Job, goodput_document, plan_goodput
from tests.analysis.async_study.conftest import eventful, study_of  # noqa: F401
from tests.analysis.history.conftest import build, changed  # noqa: F401
from tests.exports.site.conftest import make_suite  # noqa: F401
from tests.support.async_runs import make_pair, make_saves  # noqa: F401
from tests.support.browser import headless
from tests.support.large_sweep import large_sweep  # noqa: F401
from tests.support.limits import made_up
from tests.support.paired_runs import make_nightly, make_paired_run  # noqa: F401
from tests.support.verdicts import build_eventful

pytestmark = pytest.mark.nightly

DRAWN = ["recovery", "history", "study", "bisect", "verdicts", "site", "best", "report"]
"""Answers with a drawing; the others have a table."""
NAMES = [*DRAWN, "plan", "goodput", "limits", "lineage"]
WIDTHS = [1280, 500, 360]
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
FOLDED = "document.querySelectorAll('details').forEach(each => { each.open = true; })"
CUT = """
[...document.querySelectorAll('.chart span')].filter(each => {
  const box = each.getBoundingClientRect();
  return box.width > 0 && (box.left < 0 || box.right > document.documentElement.clientWidth);
}).map(each => each.textContent)
"""
AXE = """
axe.run({resultTypes: ['violations']}).then(found => found.violations
  .filter(each => ['serious', 'critical'].includes(each.impact))
  .map(each => `${each.id}: ${each.nodes.map(node => node.html).slice(0, 3).join(' ')}`))
"""
"""What axe-core finds that is serious or worse."""


@pytest.fixture(scope="module")
def browser():
    with headless() as started:
        yield started


@pytest.fixture(scope="module")
def axe():
    """The source of axe-core."""
    package = importlib.util.find_spec("axe_core_python")
    assert package is not None, "axe-core-python is missing: `make setup` installs it"
    (folder,) = package.submodule_search_locations
    return Path(folder, "axe.min.js").read_text(encoding="utf-8")


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


def searched():
    releases = [f"0.{minor}.{patch}" for minor in (11, 12) for patch in range(6)]
    steps = [
        {
            "release": release,
            "against": releases[0],
            "purpose": "search",
            "outcome": "REGRESSION" if place > 6 else "PASS",
            "why": "loads take 62 % longer",
            "ratios": [
                {"operation": "load", "ratio": ratio, "low": ratio - 0.1, "high": ratio + 0.1}
            ],
            "folder": f"{releases[0]}_and_{release}",
        }
        for place, release in enumerate(releases)
        if place
        for ratio in [1.62 if place > 6 else 1.02]
    ]
    return {
        "package": "orbax-checkpoint",
        "releases": releases,
        "conclusion": "named",
        "last_good": releases[6],
        "first_bad": releases[7],
        "operations": ["load"],
        "steps": steps,
    }


def documents():
    """Returns documents of what needs no run, by name."""
    names = [f"compilation_cache=off,save_interval_steps={each}" for each in range(3)]
    drills = {"run_id": "r", "suite": "s", "series": list(map(drilled, names))}
    source = read_source("llama-8b+adamw")
    plans = plan_source(source, mesh="data=16,fsdp=16", devices_per_host=4)
    job = Job(
        mtbf_s=14400,
        blocking_s=2,
        background_s=120,
        slowdown=0.1,
        save_s=122,
        recovery_s=300,
        devices=256,
    )
    seconds = {name: (place + 1) / 10 for place, name in enumerate(PROBES)}
    digest = "sha256:" + 64 * "5"
    findings = [
        Finding(what="verdicts", name="verdicts.json", status="unchanged", digest=digest),
        Finding(what="samples", name="samples.parquet", status="changed", digest=digest, depth=1),
        Finding(
            what="checkpoint",
            name="/data/checkpoints/of/a/long/path/that/does/not/fit/on/a/phone/100",
            status="unknown",
            depth=2,
            details={"digest of": "names, sizes and metadata files"},
        ),
    ]
    return {
        "recovery": recovery_document(Recovery.model_validate(drills), "out"),
        "bisect": search_document(ReleaseSearch.model_validate(searched()), "out"),
        "plan": plans_document(plans, source, "llama-8b+adamw"),
        "goodput": goodput_document(plan_goodput(job, interval_s=900)),
        "limits": limits_document(made_up(seconds)),
        "lineage": lineage_document(findings, "results"),
    }


@pytest.fixture
def files(once, tmp_path_factory, changed, eventful, make_suite, large_sweep):
    """A page of each answer, as files by name."""

    def make():
        folder = tmp_path_factory.mktemp("pages")
        made = {
            **documents(),
            "history": history_document(changed),
            "study": study_document(eventful),
            "verdicts": verdicts_document(build_eventful(), "out"),
        }
        found = {}
        texts = {name: to_html(document) for name, document in made.items()}
        for name, text in {**texts, **large_sweep}.items():
            found[name] = folder / f"{name}.html"
            found[name].write_text(text, encoding="utf-8")
        # The page names the folder in a command, and a long one must not push the answer down.
        runs = folder / "runs of each night on the machines of a team" / "nightly"
        make_suite(runs, "a suite", [1.0] * 8, judged=1, blocks=3)
        make_suite(runs, "a slower one", [1.0, 1.0, 1.6], judged=1)
        write_site([str(runs)], str(folder))
        return found | {"site": folder / "index.html"}

    return once("pages of answers for a browser", make)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_and_shows_the_answer_first(browser, files, name, width, dark):
    browser.open(files[name], width=width, dark=dark)
    assert browser.run("document.querySelector('h1').getBoundingClientRect().top") < 200
    first = ".chart, .small" if name in DRAWN else "table"
    assert browser.run(f"document.querySelector('{first}').getBoundingClientRect().top") < 400
    browser.run(FOLDED)
    assert browser.run(OVERFLOW) == 0
    assert browser.run(CUT) == []
    assert browser.problems == []
    # The page of a reader who asked for dark has light text on it.
    colour = browser.run("getComputedStyle(document.body).color")
    assert (sum(map(int, colour[4:-1].split(","))) > 384) == dark


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_serious(browser, axe, files, name, width, dark):
    browser.open(files[name], width=width, dark=dark)
    browser.run(FOLDED)
    browser.run(axe)
    assert browser.run(AXE) == []


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


def test_runs_are_chosen_by_suite_and_state_without_a_script(browser, files):
    browser.open(files["site"])
    browser.run(FOLDED)
    rows = "[...document.querySelectorAll('.filter + .wide tbody tr')]"
    seen = (
        f"{rows}.filter(each => each.getClientRects().length).map(each => each.cells[1].innerText)"
    )
    assert set(browser.run(seen)) == {"a suite", "a slower one"}
    browser.run("document.querySelector('.filter select').value = '1'")
    chosen = browser.run("document.querySelector('.filter select').selectedOptions[0].textContent")
    assert set(browser.run(seen)) == {chosen}
