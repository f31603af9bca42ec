"""`orbax-bench site`, and runs that write its page again."""

import json
import re

import pytest

from orbax_bench_core.publishing import Notifiers
from tests.exports.site.conftest import make_suite  # noqa: F401 - fixture
from tests.support.paired_runs import make_nightly, make_paired_run  # noqa: F401


@pytest.fixture
def site(monkeypatch, orbax_bench, tmp_path):
    """Runs `orbax-bench site` with arguments, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: orbax_bench("site", *arguments)


def page_of(folder):
    return (folder / "index.html").read_text()


def test_the_page_lies_in_the_folder_of_the_runs(site, make_nightly, tmp_path):
    make_nightly([1.0, 1.0], blocks=1)
    done = site(".")
    assert (done.code, done.err) == (0, "")
    assert "a suite  ? not judged  save +1 %  2026-03-02, 2 runs" in done.out
    assert done.out.endswith("\nNone of 1 suite needs you\nPage: ./index.html\n")
    assert "day001" in page_of(tmp_path)


@pytest.mark.slow
def test_who_needs_a_person_comes_first_and_a_pass_last(site, make_suite, tmp_path):
    """Three suites: one that passes, one that is slower, and one of which nobody has heard."""
    make_suite(tmp_path, "as fast", [1.0] * 4, judged=1)
    release = {1.0: "0.12.7", 1.6: "0.12.8"}
    make_suite(tmp_path, "slower", [1.0, 1.0, 1.6, 1.6], judged=3, version=release.get)
    make_suite(tmp_path, "silent", [1.0] * 4, ago=80, judged=1)
    done = site(".")
    rows = [line.split() for line in done.out.splitlines()[1:4]]
    assert [row[:3] for row in rows] == [
        ["slower", "✗", "REGRESSION"],
        ["silent", "✗", "NO"],
        ["as", "fast", "✓"],
    ]
    assert re.search(r"save \+(59|60|61) %  [\d-]+, 2 runs  4 h ago", done.out)
    assert "3 days ago" in done.out
    assert "\n2 of 3 suites need you\n" in done.out
    [command] = [line for line in done.out.splitlines() if line.startswith("Next: ")]
    assert re.fullmatch("Next: orbax-bench compare .*/slower-03", command)
    page = page_of(tmp_path)
    assert "<h1>2 of 3 suites need you</h1>" in page
    assert page.index(">slower</a>") < page.index(">silent</a>") < page.index(">as fast</a>")
    assert "silent</code>: ✗ NO REPORT: it has reported last with the run of " in page
    assert "New in the first of them: orbax-checkpoint: 0.12.7 → 0.12.8." in page
    assert 'aria-label="4 runs against the baseline: ' in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ({"code": "too_early"}, "too_early (no values)"),
        ({"code": "storage", "values": {"share": "half"}}, "storage (share=half)"),
        ({"code": "one_size", "values": {"series": "save"}}, "one_size (series=save)"),
    ],
)
def test_reasons_whose_values_do_not_fit_are_shown_as_they_are(
    site, make_suite, tmp_path, reason, said
):
    """A file that somebody has changed must not end the page of all others."""
    make_suite(tmp_path, "a suite", [1.0] * 2, judged=1)
    for file in tmp_path.glob("*/verdicts.json"):
        report = json.loads(file.read_text())
        [point] = report["points"]
        point |= {"word": "INCONCLUSIVE", "reason": [reason], "endpoint": "missing"}
        file.write_text(json.dumps(report | {"word": "INCONCLUSIVE"}))
    assert site(".").code == 0
    assert said in page_of(tmp_path)


@pytest.mark.slow
def test_what_is_kept_of_200_nights_stays_below_half_a_megabyte(site, make_nightly, tmp_path):
    """The page of all of them, and what it remembers of each."""
    nights = 200
    for run in make_nightly([1.0 + 0.3 * (night > 150) for night in range(nights)], blocks=1):
        (run.root / "metrics.json").write_text("{}")  # of a run that has reported
    assert site(".", "--most", nights).code == 0
    kept = [path for path in tmp_path.iterdir() if path.is_file()]
    assert {path.name for path in kept} >= {"index.html", "site.json", "site-cards.json.gz"}
    assert sum(path.stat().st_size for path in kept) < 500_000
    assert page_of(tmp_path).count("day") >= nights


def test_what_cannot_be_read_fails_and_is_named(site, make_nightly, tmp_path):
    make_nightly([1.0], blocks=1)
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "run.json").write_text("{")
    assert site(".").code == 1
    assert "torn/run.json" in page_of(tmp_path)
    assert "day000" in page_of(tmp_path)


def test_a_place_that_is_not_there_is_a_user_s_mistake(site):
    done = site("nowhere")
    assert (done.code, done.out) == (2, "")
    assert "nowhere is no directory" in done.err


def test_a_run_writes_the_page_beside_it_anew(site, make_nightly, tmp_path):
    _, second = make_nightly([1.0, 1.0], blocks=1)
    second.root.rename(tmp_path.parent / "aside")
    site(".")
    (tmp_path.parent / "aside").rename(second.root)
    assert "day001" not in page_of(tmp_path)
    Notifiers.of(environment={}).ended("a suite", "PASS", str(second.root), ())
    assert "day001" in page_of(tmp_path)


def test_a_page_is_written_anew_from_any_folder(site, make_nightly, tmp_path, monkeypatch):
    first, second = make_nightly([1.0, 1.0], blocks=1)
    site(".", "-o", "public")
    second.root.rmtree()
    monkeypatch.chdir(tmp_path.parent)
    environment = {"ORBAX_BENCH_SITE": str(tmp_path / "public")}
    Notifiers.of(environment=environment).ended("a suite", "PASS", str(first.root), ())
    assert "day001" not in page_of(tmp_path / "public")


def test_a_run_writes_the_page_that_the_environment_names(make_nightly, tmp_path):
    [run] = make_nightly([1.0], blocks=1)
    environment = {"ORBAX_BENCH_SITE": str(tmp_path)}
    Notifiers.of(environment=environment).ended("a suite", "PASS", str(run.root), ())
    assert "day000" in page_of(tmp_path)


def test_a_page_that_cannot_be_written_is_a_warning(make_nightly, tmp_path, capfd):
    [run] = make_nightly([1.0], blocks=1)
    (tmp_path / "site.json").write_text("[]")
    Notifiers.of(environment={}).ended("a suite", "PASS", str(run.root), ())
    assert "warning: the page of past runs cannot be written again: " in capfd.readouterr().err
