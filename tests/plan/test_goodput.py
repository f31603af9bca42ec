"""Goodput, held against published and independent figures."""

import dataclasses
import gzip
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orbax_bench_core.cli.main import app
from orbax_bench_core.errors import UserError
from orbax_bench_core.limits import write
from orbax_bench_core.plan import StorageOptions, goodput, plan_checkpoint, speeds_of_run
from orbax_bench_core.records import RunDirectory
from tests.support.limits import made_up

LOG = Path(__file__).parents[2] / "examples" / "job_log.jsonl"
ASYNC = goodput.Job(
    mtbf_s=14400,
    blocking_s=2,
    background_s=120,
    slowdown=0.1,
    save_s=122,
    recovery_s=300,
    step_s=3,
    devices=704,
)
GIVEN = {"mtbf_s": 14400, "blocking_s": 2, "background_s": 120, "slowdown": 0.1, "recovery_s": 300}


@pytest.mark.parametrize(
    ("case", "simulated", "error"),
    [
        # Event simulations (40 runs of 40 failures each) of a program that is not this one, by
        # cost, background part, slowdown, recovery, time between failures and interval.
        ((60, 0, 0, 300, 14400, 1315), 0.893, 0.003),
        ((60, 0, 0, 300, 14400, 3600), 0.852, 0.007),
        ((2, 120, 0.1, 300, 14400, 635), 0.931, 0.003),
        ((30, 0, 0, 600, 3600, 465), 0.747, 0.009),
        ((30, 300, 0.3, 600, 3600, 900), 0.620, 0.012),
        # Of 1,000,000 failures.
        ((2, 120, 0.1, 300, 14400, 108), 0.8574, 0.001),
        ((30, 300, 0.3, 600, 3600, 900), 0.6095, 0.001),
    ],
)
def test_goodput_is_that_of_an_event_simulation(case, simulated, error):
    d, background, slowdown, recovery, mtbf, tau = case
    job = goodput.Job(
        mtbf_s=mtbf,
        blocking_s=d,
        background_s=background,
        slowdown=slowdown,
        save_s=d + background,
        recovery_s=recovery,
    )
    found = goodput.plan_goodput(job, interval_s=tau).strategies[-1]
    assert found.goodput == pytest.approx(simulated, abs=error + 0.002)


@pytest.mark.parametrize(
    ("mtbf", "share", "recoveries", "costs", "simulated"),
    [
        (14400, 0.9, (120, 400), (3, 60, 0), 0.942),
        (3600, 0.5, (60, 600), (5, 2, 0), 0.8585),
        (3600, 0.5, (60, 300), (1, 2, 120), 0.8639),
    ],
)
def test_two_tiers_are_those_of_an_event_simulation_or_better(
    mtbf, share, recoveries, costs, simulated
):
    """The simulations had Young's intervals, and these are the best ones."""
    job = goodput.Job(
        mtbf_s=mtbf,
        blocking_s=costs[1],
        background_s=costs[2],
        slowdown=0.1 if costs[2] else 0,
        save_s=costs[1] + costs[2],
        recovery_s=recoveries[1],
        local=goodput.LocalTier(blocking_s=costs[0], recovery_s=recoveries[0], share=share),
    )
    found = goodput.plan_goodput(job).strategies[-1]
    assert -0.004 < found.goodput - simulated < 0.01


def test_the_best_interval_is_better_than_those_around_it():
    at = [goodput.plan_goodput(ASYNC, interval_s=tau).strategies for tau in (300, 600, 900, 1800)]
    assert all(found[1].goodput > found[-1].goodput for found in at)
    assert at[0][1].interval_s == pytest.approx(624, rel=0.02)
    assert goodput.plan_goodput(ASYNC).young_s == pytest.approx(634.9, abs=0.1)


def test_ways_stand_side_by_side_with_what_they_waste():
    local = goodput.LocalTier(blocking_s=1, recovery_s=60, share=0.9)
    job = dataclasses.replace(ASYNC, local=local)
    plan = goodput.plan_goodput(job, interval_s=900)
    table = plan.table().set_index(["strategy", "is_best"])
    assert list(table.index) == [
        ("sync", True),
        ("async", True),
        ("continuous", True),
        ("multi-tier", True),
        ("sync", False),
        ("async", False),
    ]
    assert plan.best.name == "multi-tier"
    at_best = table.loc[("async", True)]
    assert at_best.goodput > table.loc[("async", False)].goodput
    assert at_best.wasted_device_hours_per_day == pytest.approx((1 - at_best.goodput) * 704 * 24)
    assert at_best.steps == round(at_best.interval_s / 3)


def test_saves_that_take_longer_than_the_interval_wait_for_each_other():
    plan = goodput.plan_goodput(ASYNC, interval_s=10)
    assert plan.strategies[-1].interval_s == 120 * 0.9
    assert plan.strategies[-1].goodput == plan.strategies[2].goodput


def test_a_log_of_the_package_is_read():
    # As its recorder 0.2.3 wrote it: two stalls of 3 s, a failure after step 11, back at step 10.
    log = goodput.read_log(str(LOG))
    assert (log.name, log.steps, log.step_s) == ("job", 20, 2)
    assert (log.stalls, log.blocking_s, log.interval_s) == (2, 3, 13)
    assert (log.failures, log.recovery_s, log.lost_steps) == (1, 20, 2)


def test_a_log_without_events_has_its_stalls_in_its_steps():
    entries = [{"job_name": "j", "job_start_time": 0.0}]
    now = 0.0
    for step in range(100):
        entries.append({"job_name": "j", "step_count": step, "step_start_time": now})
        now += 1 + 9 * (step % 20 == 19)
    log = goodput.log_of(entries)
    assert (log.step_s, log.stalls, log.blocking_s, log.interval_s) == (1, 4, 9, 29)
    assert (log.failures, log.mtbf_s) == (0, None)
    assert "are taken for stalls" in log.notes[0]


def test_a_job_is_put_together_from_what_is_given_its_log_and_its_checkpoint():
    log = goodput.read_log(str(LOG))
    facts = goodput.CheckpointFacts(num_bytes=10, devices=256, hosts=64, save_s=62.0)
    job = goodput.job_of({"slowdown": 0.2}, log, facts)
    assert (job.devices, job.background_s) == (256, 59)
    assert job.mtbf_s == log.mtbf_s
    assert goodput.job_of(GIVEN | {"mtbf_s": None, "host_mtbf_s": 640}, None, facts).mtbf_s == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recovery_s": None, "slowdown": None}, "give --slowdown, --recovery"),
        ({"mtbf_s": None, "host_mtbf_s": 100.0}, "--host-mtbf needs --hosts"),
        ({"local_share": 0.5}, "a local tier needs --local-save, --local-recovery as well"),
        ({"slowdown": 1.0}, "slowdown is a share below 1"),
        ({"mtbf_s": 0.0}, "mtbf_s must be more than 0 seconds, got 0"),
        ({"step_s": 0.0}, "step_s must be more than 0 seconds, got 0"),
        ({"recovery_s": -1.0}, "recovery_s must be 0 or more, got -1"),
        (
            {"local_blocking_s": 1.0, "local_recovery_s": 1.0, "local_share": 1.0},
            "is between 0 and 1, got 1",
        ),
    ],
)
def test_what_is_missing_or_wrong_of_a_job_is_named(change, message):
    with pytest.raises(UserError) as error:
        goodput.job_of({**GIVEN, **change})
    assert message in str(error.value)


def test_what_neither_log_nor_checkpoint_has_must_be_given():
    log = goodput.log_of([{"job_name": "j", "step_count": 0, "step_start_time": 0.0}])
    with pytest.raises(UserError) as error:
        goodput.job_of(
            {}, log, goodput.CheckpointFacts(num_bytes=1, devices=8, hosts=1, save_s=None)
        )
    assert str(error.value).startswith(
        "the log and the checkpoint do not say it: give --mtbf, --save-blocking"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{\n", "an entry is a JSON object, got '{'"),
        ("3\n", "an entry is a JSON object, got 3"),
        ('{"step_start_time": "noon"}\n', "a number of seconds since the epoch, got 'noon'"),
        ('{"step_start_time": 1e999}\n', "a number of seconds since the epoch, got inf"),
        ('{"step_start_time": NaN}\n', "a number of seconds since the epoch, got nan"),
        (f'{{"step_start_time": 1{"0" * 400}}}\n', "a number of seconds since the epoch, got 1"),
        ('{"step_count": "1e3", "step_start_time": 1}\n', "of a step is an integer, got '1e3'"),
        (f"{'[' * 100_000}\n", "an array of JSON has its end missing, or a mistake"),
        ('{"job_start_time": 1}\n', "no entry has a step_start_time"),
        ("", "no entry has a step_start_time"),
    ],
)
def test_a_file_that_is_no_log_is_explained(tmp_path, text, message):
    (tmp_path / "log").write_text(text)
    with pytest.raises(UserError) as error:
        goodput.read_log(str(tmp_path / "log"))
    assert message in str(error.value)


def wrapped(rows):
    return [
        {"insertId": str(n), "logName": "projects/p/logs/g", "jsonPayload": row}
        for n, row in enumerate(rows)
    ]


def lines(rows):
    return "\n".join(map(json.dumps, rows)).encode()


FORMS = {
    "newest first": lambda rows: lines(rows[::-1]),
    "wrapped": lambda rows: lines(wrapped(rows)),
    "wrapped in an array, newest first": lambda rows: json.dumps(wrapped(rows)[::-1]).encode(),
    "gzip": lambda rows: gzip.compress(lines(rows)),
    "of Windows": lambda rows: b"\xef\xbb\xbf" + lines(rows).replace(b"\n", b"\r\n\r\n"),
    "numbers of Cloud Logging": lambda rows: lines(
        [row | {k: float(v) for k, v in row.items() if k == "step_count"} for row in rows]
    ),
    "twice": lambda rows: lines(rows * 2),
    "with lines of text": lambda rows: lines([{"textPayload": "hi", "insertId": "t"}, *rows]),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_log_says_the_same_in_every_form(tmp_path, form):
    rows = [json.loads(line) for line in LOG.read_text().splitlines() if line.strip()]
    (tmp_path / "log").write_bytes(FORMS[form](rows))
    words = ["--save-background", "10s", "--save-blocking", "2s", "--slowdown", "0.1", "--json"]
    told = []
    for file in (LOG, tmp_path / "log"):
        result = CliRunner().invoke(app, ["goodput", "--from-log", str(file), *words])
        assert result.exit_code == 0, result.output
        told.append(json.loads(result.stdout))
    notes = told[1]["log"].pop("notes")
    assert any("entries" in note for note in notes) == (form in ("twice", "with lines of text"))
    told[0]["log"].pop("notes")
    assert told[0] == told[1]


SPEC = {"w": {"dtype": "float32", "shape": [1024, 1024], "sharding": ["x"]}}


@pytest.fixture
def run(tmp_path):
    """Returns a run whose storage writes 2 GiB/s and reads 4 GiB/s."""
    write(RunDirectory(str(tmp_path)), made_up({"write_fsync": 0.5, "read_cold": 0.25}))
    return str(tmp_path)


def test_times_are_bytes_of_the_slowest_host_at_the_speed_of_the_run(run):
    speeds = speeds_of_run(run)
    assert (speeds.write, speeds.read) == (2, 4)
    bare = StorageOptions(use_compression=False)
    places = {"mesh": "x=4", "devices_per_host": 2, "speeds": speeds}
    time = plan_checkpoint(SPEC, options=bare, **places).time
    assert time.save_s == pytest.approx(2 * 2**20 / 2**31)
    assert time.load_s == pytest.approx(2 * 2**20 / 2**32)


def test_each_speed_says_whether_it_was_given_or_measured(run):
    def call(*more):
        words = ["plan", "gpt2@0.1", "--no-compression", "--run", run, *more]
        return CliRunner().invoke(app, words, env={"COLUMNS": "300"}).stdout

    said = call("--write-speed", "3")
    (line,) = (line for line in said.splitlines() if line.startswith("time, at least"))
    assert re.search(r"ms at 3 GiB/s per host \(given\) .* at 4 GiB/s per host \(measured", line)
    said = call("--read-speed", "3")
    (line,) = (line for line in said.splitlines() if line.startswith("time, at least"))
    assert re.search(r"ms at 2 GiB/s per host \(measured .* at 3 GiB/s per host \(given\)", line)
