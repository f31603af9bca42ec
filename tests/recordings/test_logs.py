"""Logs that jobs leave without a recorder, held against the recording of the same job."""

import ast
import contextlib
import datetime
import gzip
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orbax_bench_core.analysis.recording import diagnosis_document, read_recording
from orbax_bench_core.errors import UserError
from orbax_bench_core.recordings import diagnose, read_job
from tests.support.processes import free_address, plain_environment, run_cli
from tests.support.shown import next_command

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "tests" / "recorder" / "jobs"
ABSL = re.compile(r"^[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d+) +\d+ ([\w.]+:\d+)\] ")


def logged(*words):
    return [sys.executable, str(JOBS / "logged.py"), *map(str, words)]


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Returns the folder of a job with a save that failed: its recording, and its `train.log`."""
    folder = tmp_path_factory.mktemp("job")
    command = logged(JOBS / "flax_loop.py", folder / "checkpoints", "full")
    done = run_cli("record", "-o", folder / "recording", "--", *command)
    assert done.returncode == 0, done.stderr
    (folder / "train.log").write_text(done.stderr)
    return folder


def dated(text):
    """Yields the moment of each line of absl, and the rest, as collectors of logs have them."""
    moment = "2026-01-01T00:00:00.000000Z"
    for line in text.splitlines():
        found = ABSL.match(line)
        moment = moment if found is None else f"2026-{found[1]}-{found[2]}T{found[3]}Z"
        yield moment, line


def without_times(text):
    return "".join(f"{ABSL.sub('INFO:absl:', line)}\n" for line in text.splitlines())


def of_a_terminal(text):
    return "".join(f"\x1b[32m{line}\x1b[0m\r\n" for line in text.splitlines())


def of_a_pod(text):
    return "".join(f"{moment} {line}\n" for moment, line in dated(text))


def of_cloud_logging(text):
    entries = [{"insertId": "1", "timestamp": t, "textPayload": line} for t, line in dated(text)]
    return json.dumps(entries[::-1], indent=2)


@pytest.mark.slow
@pytest.mark.parametrize("form", [str, without_times, of_a_terminal, of_a_pod, of_cloud_logging])
def test_a_log_tells_what_the_recording_of_its_job_does(job, tmp_path, form):
    log = tmp_path / "train.log"
    log.write_text(form((job / "train.log").read_text()))
    job_of_log, recording = read_job(str(log)), read_recording(str(job / "recording"))
    found, recorded = diagnose(job_of_log), diagnose(recording)
    assert [finding.kind for finding in found.findings][:1] == ["failed"]
    assert "1 of 11 saves failed, step 15" in found.findings[0].text
    assert "No space left on device" in found.findings[0].text
    assert "steps of training" in found.unsaid
    assert ("how long it is" in found.unsaid) == (form is without_times)
    assert [one.step for one in job_of_log.saves] == [one.step for one in recording.saves]
    assert (found.committed, found.failed) == (recorded.committed, recorded.failed) == (10, 1)
    assert found.loads.count == recorded.loads.count == 1
    assert found.checkpoint == recorded.checkpoint
    for mine, truth in zip(job_of_log.saves, recording.saves, strict=True):
        if mine.is_whole:
            # Orbax's clock of a call lies within that around it; ours of the whole, to 10 ms, too.
            assert 0 < mine.first.call_s <= truth.first.call_s + 1e-3
            assert mine.first.waited_s <= truth.first.call_s
            assert mine.first.total_s >= mine.first.call_s
            if form is without_times:
                assert mine.first.own_s is None
                continue
            assert mine.first.own_s[1] == pytest.approx(truth.first.own_s[1], abs=1e-4)


@pytest.mark.slow
def test_a_log_is_shown_as_a_recording_is_and_says_what_it_does_not_say(job):
    done = run_cli("diagnose", job / "train.log")
    assert done.returncode == 1, done.stderr
    assert "SAVES FAILED: 1 of 11 saves failed, step 15" in done.stdout
    assert "the log does not say" in done.stdout


@pytest.mark.slow
def test_statistics_of_orbax_in_a_log_of_goodput_are_its_saves(job, tmp_path):
    told = re.findall(r"\{'step': .*\}", (job / "train.log").read_text())
    saves = [each for each in map(ast.literal_eval, told) if each["event_type"] == "save"]
    first, last = (saves[n]["checkpoint_manager_blocking_start_time"] for n in (0, -1))
    steps = [
        {"step_count": n, "step_start_time": first - 1 + n} for n in range(int(last - first) + 9)
    ]
    entries = [
        {"job_name": "job", **each} for each in [{"job_start_time": first - 2}, *steps, *saves]
    ]
    log = tmp_path / "goodput.jsonl.gz"
    log.write_bytes(gzip.compress("\n".join(map(json.dumps, entries)).encode()))
    found = diagnose(read_job(str(log)))
    assert found.unknown == len(saves) == 11
    assert found.calls.total == pytest.approx(
        sum(each["checkpoint_manager_blocking_duration_secs"] for each in saves)
    )
    assert found.steps.count == len(steps) - 1
    assert found.background is None


def test_stalls_and_starts_of_a_log_of_goodput_are_told():
    done = run_cli("diagnose", ROOT / "examples" / "job_log.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["lives"], found["unknown"], found["committed"]) == (2, 2, 0)
    assert found["calls"]["median"] == 3.0
    assert found["steps"]["median"] == 2.0
    assert found["background"] is None
    assert found["interval"] is None
    assert "what goes on in the background" in found["unsaid"]
    shown = run_cli("diagnose", ROOT / "examples" / "job_log.jsonl").stdout
    assert "2; the log does not say whether they were committed" in shown
    words = next_command(shown)
    assert words[:2] == ["goodput", "--from-log"]
    assert run_cli(*words).returncode == 0


def log_of_two_starts():
    """Returns the log of a job that was killed in a save and began again, with steps of MaxText."""

    def line(second, text):
        moment = datetime.datetime(2026, 11, 28, 12, 0, tzinfo=datetime.UTC)
        return f"{(moment + datetime.timedelta(seconds=second)).isoformat()} {text}\n"

    created = "[process=0][thread=MainThread] CheckpointManager created, x, root_directory=/ck: <o>"
    begun = "[process=0] [async] Started save checkpoint @ /ck/{}."
    ended = "[process=0] [async] Finished save (blocking + background) in 2.00 seconds @ /ck/{}"
    text = ""
    for begin, step in ((0, 10), (100, 20)):
        text += line(begin, created)
        text += "".join(
            line(begin + n, f"completed step: {step + n}, seconds: 1.000, TFLOP/s/device: 1.0")
            for n in range(5)
        )
        text += line(begin + 5, begun.format(step))
        text += line(begin + 7, ended.format(step)) if begin else ""
    return text


def test_a_job_that_begins_again_and_one_of_maxtext_are_read_from_their_lines(tmp_path):
    (tmp_path / "train.log").write_text(log_of_two_starts())
    found = read_job(str(tmp_path / "train.log"))
    assert len(found.lives) == 2
    assert [save.fate for save in found.saves] == ["cut off", "committed"]
    assert [number for number, _, _ in found.lives[1].steps] == [20, 21, 22, 23, 24]


@pytest.mark.parametrize("release", ["0.11.13", "0.11.28"])
def test_the_lines_of_older_releases_tell_the_same(release):
    """They are of a manager that saves each five steps, and of checkpointers in both ways."""
    found = read_job(str(ROOT / "tests" / "data" / "logs" / f"orbax_{release}.log"))
    told = [(one.what, one.path) for one in found.operations]
    saves = [("save", f"/ck/{step}") for step in range(0, 31, 5)]
    assert told == [*saves, ("load", "/ck/30"), ("save", "/ck_bare"), ("save", "/ck_sync")]
    assert {one.fate for one in found.operations} == {"committed"}
    assert all(one.first.call_s > 0 for one in found.operations)
    assert all((one.first.behind_s > 0.05) == one.background for one in found.saves)
    assert [one.background for one in found.saves] == [True] * 8 + [False]


def test_a_log_with_damaged_lines_is_read_or_refused(tmp_path):
    log = tmp_path / "train.log"
    data = (log_of_two_starts() * 2).encode() + (ROOT / "examples" / "job_log.jsonl").read_bytes()
    for seed in range(100):
        draw = random.Random(seed)
        damaged = bytearray(data)
        for _ in range(draw.randrange(1, 40)):
            at = draw.randrange(len(damaged))
            damaged[at : at + draw.randrange(60)] = draw.choice([b"", b"9" * 30, b"{\xff", b"\n"])
        log.write_bytes(damaged)
        with contextlib.suppress(UserError):
            diagnosis_document(diagnose(read_job(str(log))))


def test_a_file_without_such_lines_is_refused_with_how_to_get_them(tmp_path):
    (tmp_path / "train.log").write_text("loss 0.1\n")
    with pytest.raises(UserError, match=r"train.log has no line of Orbax .*set_verbosity"):
        read_job(str(tmp_path / "train.log"))


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["", "slow"])
def test_the_log_of_two_hosts_names_the_slow_one_and_none_of_two_equal_ones(tmp_path, fault):
    address = free_address()
    words = [address, tmp_path / "checkpoints", *filter(None, [fault])]
    with (tmp_path / "train.log").open("ab") as log:
        processes = [
            subprocess.Popen(
                logged(JOBS / "two_hosts.py", index, *words),
                env=plain_environment(),
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
            for index in range(2)
        ]
        assert [process.wait(300) for process in processes] == [0, 0]
    found = diagnose(read_job(str(tmp_path / "train.log")))
    assert [finding.kind for finding in found.findings] == (["slow host"] if fault else [])
    assert (found.hosts, found.committed) == (2, 10)
    if fault:
        assert "host 1 is slowest" in found.findings[0].text
