"""`orbax-bench watch`: the suites that nobody would hear of."""

import datetime

import pytest

from orbax_bench_core import engine
from orbax_bench_core.records import Heartbeat, RunDirectory
from tests.support.webhook import webhook  # noqa: F401 - a fixture

HOUR = datetime.timedelta(hours=1)


@pytest.fixture
def night(make_run, make_record):
    """Writes a run that began some hours ago; returns its run directory."""

    def make(hours, name="nightly", status="complete", beat=None):
        folder = f"runs/{name}-{hours}"
        run = make_run([make_record(times={"save": 0.5})], folder=folder)
        began = datetime.datetime.now(datetime.UTC) - hours * HOUR
        changed = {"suite_name": name, "created_at": began, "status": status, "run_id": folder}
        run.write_info(run.read_info().model_copy(update=changed))
        if beat is not None:
            seen, ended = (datetime.datetime.now(datetime.UTC) - ago * HOUR for ago in beat)
            sign = Heartbeat(
                part="all", began_at=began, at=seen, last_at=ended, left_s=240.0,
                points=3, points_done=1, repeats=60, repeats_done=12,
            )  # fmt: skip
            sign.write(run)
        return run

    return make


@pytest.fixture
def watch(orbax_bench, tmp_path):
    (tmp_path / "runs").mkdir()
    return lambda *words: orbax_bench("watch", str(tmp_path / "runs"), *words)


def test_a_suite_that_reported_in_time_is_well(watch, night):
    night(30)
    night(6)
    done = watch()
    assert done.code == 0
    assert done.out.startswith("ok  nightly: the run of ")


@pytest.mark.parametrize(
    "name",
    [
        *("x\nok  production: the run of today has reported", "::error::x", "x\n::error::y"),
        *("x\r::error::y", "x\r\n##[error]y", "x\u2028ok  production", "x\x0bok  production"),
    ],
)
@pytest.mark.parametrize("hours", [6, 30])
def test_no_name_of_a_suite_makes_a_line_or_an_order(
    watch, night, orbax_bench, webhook, tmp_path, name, hours
):
    run = night(hours)
    run.write_info(run.read_info().model_copy(update={"suite_name": name}))
    (run.root.parent / "other\n::error::z").mkdir()
    (run.root.parent / "other\n::error::z" / "run.json").write_text("{")
    done = watch("--notify", f"slack+{webhook.url}")
    pruned = orbax_bench("prune", run.root.parent, "--keep", "1h")
    said = [done.out, done.err, pruned.out, pruned.err]
    said += [message["text"] for _, message in webhook.posted]
    assert len(said) == 4 + (hours == 30)
    lines = [line for text in said for line in text.splitlines()]
    starts = ("ok  ", "NOT OK  ", "cannot be read: ", "notified ", "*FAILED: ", "it has ", "`")
    known = ("0 ", "error: ", *starts)
    assert [line for line in lines if not line.startswith(known)] == []
    assert sum(line.startswith(("ok  ", "NOT OK  ")) for line in lines) == 1


def test_a_suite_that_began_no_run_is_told(watch, night):
    night(27)
    night(2, name="other")
    done = watch()
    assert done.code == 1
    assert "NOT OK  nightly: it has reported last with the run of" in done.out
    assert "should within 26h" in done.out
    assert "ok  other" in done.out
    assert watch("--within", "2d").code == 0
    assert watch("--suite", "nightly=8d").code == 0


def test_a_run_that_is_measured_is_well_and_says_how_far_it_is(watch, night):
    night(26)
    night(2, status="running", beat=(0.01, 0.02))
    done = watch()
    assert done.code == 0
    assert "1 of 3 points, 12 of 60 repeats, about 4 min left" in done.out


@pytest.mark.parametrize(
    ("beat", "said"),
    [(None, "gives no sign since"), ((3, 3), "gives no sign"), ((0.01, 2), "no repeat has ended")],
)
def test_a_run_that_died_and_one_that_hangs_are_told_apart(watch, night, beat, said):
    night(26)
    night(4, status="running", beat=beat)
    done = watch()
    assert (done.code, said in done.out) == (1, True)
    assert watch("--stalled", "5h").code == 0


@pytest.mark.parametrize("stuck", ["all", "all but finish", "what measures"])
def test_a_night_of_a_cluster_whose_image_cannot_be_pulled_is_named(
    watch, night, tmp_path, webhook, stuck
):
    """`finish` has the same image, or waits for the stuck step, or knows no run."""
    last = night(30).read_info()
    folder, began = tmp_path / "runs" / "tonight", last.created_at
    said = "it has reported last with the run of {}"
    if stuck == "all but finish":  # a deadline has ended the first step
        suite = last.suite_text
        engine.finish(str(folder), suite=suite, engine_run="tonight", status="FAILED")
    if stuck == "what measures":
        engine.plan_sweep(last.suite_text, str(folder), engine_run="tonight")
        run, began = RunDirectory(str(folder)), began + 24 * HOUR
        changed = {"created_at": began, "suite_name": "nightly"}
        run.write_info(run.read_info().model_copy(update=changed))
        said = "the run of {0} gives no sign since {0}"
    done = watch("--notify", webhook.url)
    assert (done.code, webhook.states) == (1, ["FAILED"])
    assert f"NOT OK  nightly: {said.format(f'{began:%Y-%m-%d %H:%M} UTC')}" in done.out


def test_a_run_that_takes_longer_than_its_schedule_is_told(watch, night):
    night(30, status="running", beat=(0.01, 0.02))
    done = watch()
    assert (done.code, "it has reported never" in done.out) == (1, True)


def test_a_suite_that_was_never_begun_is_told_where_it_is_named(watch, night):
    assert watch().code == 1  # of an empty folder nobody hears either
    night(2)
    assert watch().code == 0
    done = watch("--suite", "weekly=8d")
    assert (done.code, "NOT OK  weekly: there is no run of it" in done.out) == (1, True)


def test_a_suite_of_long_ago_is_no_longer_expected_unless_it_is_named(watch, night):
    night(2)
    night(40 * 24, name="retired")
    done = watch()
    assert (done.code, "no longer expected: retired" in done.out) == (0, True)
    assert watch("--suite", "retired").code == 1


def test_the_webhook_hears_of_silence_once(watch, night, webhook, monkeypatch):
    monkeypatch.setenv("ORBAX_BENCH_NOTIFY", webhook.url)
    night(27)
    assert [watch().code for _ in range(3)] == [1, 1, 1]
    [(_, message)] = webhook.posted
    assert (message["state"], message["suite"]) == ("FAILED", "nightly")
    assert "should within 26h" in message["lines"][0]


def test_what_cannot_be_read_is_no_good_news(watch, night, tmp_path):
    night(2)
    (tmp_path / "runs" / "torn").mkdir()
    (tmp_path / "runs" / "torn" / "run.json").write_text("{")
    done = watch()
    assert (done.code, "cannot be read: " in done.out) == (1, True)


def test_a_folder_that_is_not_there_is_refused(orbax_bench, tmp_path):
    assert orbax_bench("watch", str(tmp_path / "none")).code == 2
