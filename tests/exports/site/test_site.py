"""The morning page of past runs."""

import dataclasses
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from etils import epath

from orbax_bench_core.analysis.verdicts import write_verdicts
from orbax_bench_core.exports.site import gather, renew_site, site_document, write_site
from orbax_bench_core.exports.site.cards import CARDS
from orbax_bench_core.exports.site.view import _address
from orbax_bench_core.exports.site_folder import has_site
from orbax_bench_core.files import write_atomically
from orbax_bench_core.pages import to_html
from orbax_bench_core.publishing import publish
from orbax_bench_core.records import Run, RunDirectory
from tests.golden.text_support import page_text
from tests.support.pages import assert_whole
from tests.support.scripted import NAME
from tests.support.verdicts import build_operation, build_point, build_report


@pytest.fixture
def site(once, nights):
    return once("a gathered site", lambda: gather([str(nights)], most=60))


@pytest.fixture
def page(once, nights, site):
    return once("the page of a site", lambda: to_html(site_document(site, epath.Path(nights))))


def test_the_newest_run_of_each_suite_gives_its_state(site):
    states = {name: nights[0].state for name, nights in site.suites().items()}
    assert states == {"a suite": "INCONCLUSIVE", "a sweep": "complete"}


def test_the_page_is_whole_and_says_what_cannot_be_read(page):
    assert_whole(page)
    assert "<script>alert" not in page
    assert "torn/run.json" in page_text(page).split("Could not be read")[1]


def test_a_change_has_its_releases_and_the_command_that_asks_whether_it_is_one(page):
    text = page_text(page)
    assert "2026-03-14, save of save_restore[<script>alert(1)</script>]: +4" in text
    assert "orbax-checkpoint: 0.12.7 → 0.12.8. This asks whether it is one:" in text
    assert "orbax-bench bisect" in text


def test_links_lead_to_files_that_are_there(page, nights):
    links = re.findall(r'href="([^"]+)"', page)
    assert "other%2020/report.html" in links
    assert any(link.endswith("/verdicts.html") for link in links)
    assert all((nights / link.replace("%20", " ")).exists() for link in links)


def test_older_runs_are_left_out_and_counted(nights):
    site = gather([str(nights)], most=3)
    assert (len(site.nights), site.older) == (5, 17)


def test_a_record_that_cannot_be_read_hides_no_other_run(copied):
    record = next((copied / "day000").glob("records/*/repeat_*/host_0.json"))
    record.write_text("{")
    site = gather([str(copied)], most=60)
    assert len(site.nights) == 22


def test_a_run_below_a_page_writes_it_anew(copied):
    write_site([str(copied)], str(copied))
    shutil.rmtree(copied / "other 21")
    assert has_site(epath.Path(copied))
    renew_site(epath.Path(copied))
    assert "other 21" not in (copied / "index.html").read_text()


def test_a_page_reads_the_records_of_finished_runs_once(copied, monkeypatch):
    """And again where a run or its tables have changed."""
    read = []
    read_points = Run.points

    def watched(self):
        read.append(self.directory.root.name)
        return read_points(self)

    monkeypatch.setattr(Run, "points", watched)
    (copied / "torn" / "run.json").unlink()
    for name in ("day000", "day001", "day002"):
        info = RunDirectory(str(copied / name)).read_info()
        done = info.model_copy(update={"status": "complete"})
        RunDirectory(str(copied / name)).write_info(done)
        (copied / name / "metrics.json").write_text("{}")
    first = write_site([str(copied)], str(copied))
    assert len(read) == len(set(read)) == 22
    read.clear()
    (copied / "day001" / "metrics.json").write_text('{"more": 1}')
    renew_site(epath.Path(copied))
    assert sorted(read) == sorted({one.folder.name for one in first.nights} - {"day000", "day002"})
    before = (copied / "index.html").read_text()
    (copied / CARDS).write_bytes(b"torn")
    renew_site(epath.Path(copied))
    after = (copied / "index.html").read_text()
    assert len(read) == 20 + 22
    assert len(after) == len(before)


@pytest.mark.parametrize(
    ("page_at", "run_at", "link"),
    [
        ("gs://b/site", "gs://b/nights/r", "../nights/r"),
        ("gs://b/site", "gs://c/r", "https://storage.cloud.google.com/c/r"),
        ("/here", "gs://c/a b", "https://storage.cloud.google.com/c/a%20b"),
        ("gs://b/site", "/there/r", ""),
        ("/a/b", "/a/c d/r", "../c%20d/r"),
    ],
)
def test_addresses_are_relative_where_they_can_be(page_at, run_at, link, site):
    class At(str):
        __slots__ = ()

    night = dataclasses.replace(site.nights[0], folder=At(run_at))
    assert _address(night, At(page_at)) == link


def test_a_run_whose_path_is_no_text_is_named_and_hides_no_other(nights, tmp_path):
    one, page = next(path.parent for path in nights.glob("*/report.html")), tmp_path / "page"
    for name in ("one", os.fsdecode(b"caf\xe9")):
        shutil.copytree(one, tmp_path / "runs" / name)
    found = write_site([str(tmp_path / "runs")], str(page))
    assert len(found.nights) == 1
    assert any("its bytes are no UTF-8" in line for line in found.unread)
    assert "no UTF-8" in (page / "index.html").read_text()


def test_a_name_that_turns_text_around_is_written_out(nights, tmp_path):
    one = next(path.parent for path in nights.glob("*/report.html"))
    shutil.copytree(one, tmp_path / "runs" / "\u202eemit")
    write_site([str(tmp_path / "runs")], str(tmp_path / "page"))
    assert "\u202e" not in (tmp_path / "page" / "index.html").read_text()


def test_a_study_of_two_systems_is_an_answer(tmp_path, make_paired_run):
    run = make_paired_run(0)
    systems = {"baseline": "PyTorch DCP", "candidate": "Orbax"}
    slower = build_operation("save", "REGRESSION", 2.1)
    write_verdicts(run, build_report(build_point("p", slower, systems=systems)))
    found = gather([str(tmp_path)], most=1)
    assert [night.state for night in found.nights] == ["COMPARED"]
    assert_whole(to_html(site_document(found, run.root.parent)))


def drills(recovered):
    """Returns recovery.json of three drills, of which some came back."""
    lost = (3 - recovered) * ["the job hangs"]
    made = {"series_id": "p", "name": "job", "arm": "candidate", "drills": 3, "verified": True}
    none = dict.fromkeys(("phases", "steps_lost", "uncommitted", "peers_s"), ())
    series = made | none | {"recovered": recovered, "reasons": lost}
    return json.dumps({"schema_version": 1, "run_id": "r", "suite": "s", "series": [series]})


@pytest.mark.parametrize(
    ("word", "recovered", "state", "answer", "page"),
    [
        ("PASS", 2, "not back", "2 of 3 drills came back; the job hangs", "recovery.html"),
        ("INCONCLUSIVE", 2, "not back", "2 of 3 drills came back; the job hangs", "recovery.html"),
        ("REGRESSION", 2, "REGRESSION", "", "verdicts.html"),
        ("INCONCLUSIVE", 3, "INCONCLUSIVE", "", "verdicts.html"),
        ("PASS", 3, "PASS", "", "verdicts.html"),
    ],
)
def test_of_several_answers_of_a_run_the_worst_is_its_state(
    tmp_path, make_paired_run, word, recovered, state, answer, page
):
    run = make_paired_run(0)
    write_verdicts(run, build_report(build_point("p", build_operation("save", word, 1.3))))
    write_atomically(run.root / "recovery.json", drills(recovered).encode())
    [night] = gather([str(tmp_path)], most=1).nights
    assert (night.state, night.found.page) == (state, page)
    assert answer in night.found.answer


def test_an_answer_that_cannot_be_read_is_named_whatever_another_says(tmp_path, make_paired_run):
    run = make_paired_run(0)
    write_verdicts(run, build_report(build_point("p")))
    write_atomically(run.root / "recovery.json", b"{}")
    found = gather([str(tmp_path)], most=1)
    assert [night.state for night in found.nights] == ["PASS"]
    assert ["recovery.json" in line for line in found.unread] == [True]


SUITE = f"""
suite_name: remote nights
execution: {{warmups: 0}}
num_repeats: 2
benchmarks: [{{generator: {NAME}, options: {{}}}}]
"""


@pytest.mark.nightly
def test_a_page_in_a_bucket_is_written_anew_by_every_run_in_it(emulator, tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    environment = emulator | {"GOOGLE_CLOUD_PROJECT": "p", "COLUMNS": "80"}

    def bench(*words):
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.fake_cli", *words],
            capture_output=True,
            text=True,
            env=environment,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def night(number):
        place = f"gs://bench-bucket/nights/{number}"
        bench("run", str(suite), "-o", place, "--no-lock", "--no-limits", "--quiet")

    nights = tmp_path / "storage" / ".cloudstorage" / "bench-bucket" / "nights"
    night(1)
    said = bench("site", "gs://bench-bucket/nights")
    assert "None of 1 suite needs you" in said
    assert "Page: gs://bench-bucket/nights/index.html" in said
    assert 'href="1/report.html"' in (nights / "index.html").read_text()
    night(2)
    assert 'href="2/report.html"' in (nights / "index.html").read_text()
    cards = json.loads(gzip.decompress((nights / "site-cards.json.gz").read_bytes()))
    assert len(cards["runs"]) == 2


def test_a_suite_whose_class_always_failed_has_failed(make_run, make_record, tmp_path):
    """`incomplete` is what a run lacks that a later try may add."""
    for name, first in {"all": "failed", "some": "passed"}.items():
        given = {"times": {"save": 0.5} if first == "passed" else {}, "run_id": name}
        last = make_record(None, 1, status="failed", times={}, run_id=name)
        records = [make_record(None, 0, status=first, **given), last]
        run = make_run(records, num_repeats=2, folder=f"runs/{name}")
        info = {"suite_name": name, "run_id": name}
        run.write_info(run.read_info().model_copy(update=info))
        publish(run)
    site = gather([str(tmp_path / "runs")], most=60)
    states = {name: nights[0].state for name, nights in site.suites().items()}
    assert states == {"all": "failed", "some": "incomplete"}
    page = to_html(site_document(site, epath.Path(tmp_path / "runs")))
    assert "no repeat has passed" in page
