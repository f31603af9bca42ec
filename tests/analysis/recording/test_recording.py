"""Recordings by their lines: hosts and starts put together, and what is said of them."""

import tracemalloc

import pytest

from orbax_bench_core.analysis.recording import (
    Interval,
    diagnosis_document,
    diagnosis_of,
    read_recording,
)
from orbax_bench_core.analysis.recording.figures import steps_of
from orbax_bench_core.errors import UserError
from tests.support.recordings import NOON, Job
from tests.support.shown import assert_tells, next_command, terminal


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path).train()


def found_of(job, **given):
    return diagnosis_of(read_recording(str(job.folder), **given))


def kinds(found):
    return [finding.kind for finding in found.findings]


def test_nothing_is_wrong_with_a_job_of_which_nothing_is(job):
    found = found_of(job.saves_of(12).write())
    assert kinds(found) == []
    assert (found.committed, found.failed, found.cut_off) == (12, 0, 0)
    assert found.save_bytes == 2**29
    assert found.calls.median == 0.2
    assert found.background.median == 2.0
    assert found.steps.ratio == pytest.approx(1.0)
    assert found.blocked_s == pytest.approx(2.4)
    assert not found.is_going
    printed = terminal(diagnosis_document(found))
    assert "NO TROUBLE: saves block" in printed
    assert next_command(printed)[0] == "diagnose"


def test_every_number_is_told(tmp_path):
    for host in range(2):
        job = Job(tmp_path, host=host, hosts=2).train()
        for number in range(205):
            waited = 0.1 if number % 2 else 0.0
            job.save(rss=100 + number, own=1.5 + 2 * host, waited=waited, state="committed")
            job.train(4.0 + host / 10)
        job.lines.append({"line": "wait", "t": job.t, "seconds": 0.5})
        failed = {"id": None, "what": "load", "where": "call", "t": job.t, "error": "IOError"}
        job.lines.append({"line": "failed", **failed})
        load = {"id": 900, "what": "load", "step": 100, "path": "/ck/100", "t": job.t}
        job.lines.append({"line": "begin", **load})
        job.lines.append({"line": "end", **load, "state": "committed", "call_s": 3.0})
        job.write(close=False, torn='{"line":"beg')
    interval = Interval(
        now=10.0,
        best=300.0,
        goodput_now=0.9,
        goodput_best=0.99,
        mtbf=86400.0,
        mtbf_is_assumed=False,
        recovery=200.0,
    )
    found = diagnosis_of(read_recording(str(job.folder), now=job.t), lambda _: interval)
    assert kinds(found)[:2] == ["leak", "slow host"]
    assert found.is_going
    assert_tells(found, diagnosis_document)
    assert ", and 500 ms in waits of its own" in terminal(diagnosis_document(found))


def test_a_save_that_failed_is_told_with_its_step_and_when_the_job_was_told(job):
    job.saves_of(3).save(state="failed")
    error = {"id": 4, "what": "save", "error": "OSError", "message": "[Errno 28] No space"}
    job.lines.append({"line": "failed", "where": "background", "t": job.t, **error})
    job.train()
    job.lines.append({"line": "surfaced", "t": job.t, **error, "step": 500})
    found = found_of(job.saves_of(3).write())
    (finding,) = found.findings
    assert finding.kind == "failed"
    assert "1 of 7 saves failed, step 400: OSError: [Errno 28] No space" in finding.text
    assert "the job was told 10 s later; the job went on and saved again" in finding.text


def test_a_failure_that_the_job_was_never_told_says_so(job):
    job.save(state="failed").lines.append(
        {"line": "failed", "where": "background", "t": job.t, "id": 1, "what": "save", "error": "E"}
    )
    assert "the job was never told" in found_of(job.write()).findings[0].text


def test_saves_of_another_thread_block_that_and_not_training(job):
    job.saves_of(3)
    for line in job.lines:
        if line["line"] == "begin":
            line["thread"] = "saver"
    printed = terminal(diagnosis_document(found_of(job.write())))
    assert "NO TROUBLE: saves block the thread saver for 600 ms of" in printed
    assert "saver blocked" in printed
    assert "training blocked" not in printed


def test_saves_without_steps_are_named_by_their_paths_and_none_after_them_is_invented(job):
    for place in ("/ck/a", "/ck/b"):
        job.save(step=None, path=place, state="failed").train()
        job.lines[-3]["step"] = None
    (finding,) = found_of(job.write()).findings
    assert finding.text.startswith("2 of 2 saves failed, /ck/a, /ck/b: ")
    assert finding.text.endswith("; the job went on")


def test_a_save_that_never_ended_is_cut_off_once_its_process_is_gone(job):
    job.saves_of(3).save(ends=False).write(close=False)
    assert kinds(found_of(job, now=job.t + 10)) == []
    found = found_of(job, now=job.t + 100)
    assert kinds(found) == ["cut off"]
    assert "step 400" in found.findings[0].text
    assert "the last checkpoint before is step 300" in found.findings[0].text


def test_a_stall_is_told_with_its_phase(job):
    found = found_of(job.saves_of(8).save(call=9.0, d2h=8.5).train().saves_of(3).write())
    (finding,) = found.findings
    assert finding.kind == "stalled"
    assert "step 900 blocked training for 9 s, usually it is 200 ms" in finding.text
    assert "8.4 s more in `blocking_d2h_s`" in finding.text


def test_of_two_stalls_the_one_that_took_longer_is_told_first(job):
    job.saves_of(8).save(call=3.0).train().save(behind=30.0).train(40.0).saves_of(3).write()
    first, second = found_of(job).findings
    assert "step 1000 went on in the background for 30 s" in first.text
    assert "step 900 blocked training for 3 s" in second.text


def test_steps_that_are_slower_next_to_a_save_are_told(job):
    for _ in range(12):
        job.save(behind=8.0).train(8.0, 0.2).train(8.0)
    (finding,) = found_of(job.write()).findings
    assert finding.kind == "slower steps"
    assert "+100 % (+100 to +100 %) longer" in finding.text


@pytest.mark.parametrize(
    ("slower", "held", "expected"),
    [(2.0, 0.0, ["slow host"]), (0.2, 0.0, []), (2.0, 0.25, ["slow host"]), (2.0, 2.0, [])],
)
def test_a_host_is_slow_only_where_its_own_writes_are_clearly_so_in_most_saves(
    tmp_path, slower, held, expected
):
    for host in range(3):
        job = Job(tmp_path, host=host, hosts=3).train()
        one = host == 1
        job.saves_of(12, own=1.5 + slower * one, held=held * one).write()
    found = found_of(job)
    assert kinds(found) == expected
    if expected:
        text = found.findings[0].text
        assert "host 1 (node-1) is slowest in 12 of 12 saves" in text
        assert "2 s more in `background_ts_s`" in text


@pytest.mark.parametrize(
    ("late", "blocks", "expected"),
    [
        pytest.param(1.0, 1.0, ["slow host"], id="the others wait for it"),
        pytest.param(1.0, 0.0, [], id="its clock is another"),
        pytest.param(0.0, 1.0, [], id="the others take longer by themselves"),
        pytest.param(0.02, 0.02, [], id="by less than a hundredth of the time"),
    ],
)
def test_a_host_for_which_the_others_wait_is_named(tmp_path, late, blocks, expected):
    for host in range(3):
        job = Job(tmp_path, host=host, hosts=3).train()
        job.t += late * (host == 1)
        for _ in range(12):
            job.save(call=0.2 + blocks * (host != 1)).train(10 + blocks * (host == 1))
        job.write()
    found = found_of(job)
    assert kinds(found) == expected
    if expected:
        assert "host 1 (node-1) comes last to 12 of 12 saves" in found.findings[0].text
        assert "for which the others wait 1 s each" in found.findings[0].text


def test_starts_of_a_job_are_lives_and_the_same_step_saved_again_is_another_save(tmp_path):
    for begin in (NOON, NOON + 1000):
        for host in range(2):
            job = Job(tmp_path, host=host, hosts=2, begin=begin + host).train()
            job.saves_of(3).write(close=begin > NOON)
    recording = read_recording(str(job.folder))
    assert len(recording.lives) == 2
    assert [len(save.parts) for save in recording.saves] == [2] * 6
    assert [save.step for save in recording.saves] == [100, 200, 300] * 2


def test_a_folder_without_a_recording_is_refused_with_the_command_that_makes_one(tmp_path):
    with pytest.raises(UserError, match=r"orbax-bench record -o .* -- python train.py"):
        read_recording(str(tmp_path))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", r"holds no recording that can be read"),
        ('{"line":"life","format":2,"t":1}', r"version 2, which a later release .* version 1"),
    ],
)
def test_a_recording_that_is_not_understood_is_told_apart_from_none(tmp_path, line, said):
    (file := tmp_path / "host_00000" / "a.jsonl").parent.mkdir()
    file.write_text(line)
    with pytest.raises(UserError, match=said):
        read_recording(str(tmp_path))


def test_a_long_job_takes_no_memory_for_each_draw_of_its_steps(job):
    recording = read_recording(str(job.saves_of(3000).write().folder))
    tracemalloc.start()
    assert steps_of(recording).ratio == pytest.approx(1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 2**20  # of 300,000 steps; all draws at once are twice that


def test_what_was_not_read_is_said_with_the_answer(tmp_path):
    job = Job(tmp_path, hosts=4).train().saves_of(12)
    for where in ("event", "write", "openmetrics"):
        job.lines.append({"line": "trouble", "t": job.t, "where": where, "error": "TypeError()"})
    found = found_of(job.write(torn='{"line":"beg'))
    printed = terminal(diagnosis_document(found))
    assert "NO TROUBLE: in what was read, saves block" in printed
    erred = "what 1 error of the recorder cost (event: TypeError())"
    assert f"1 damaged line, {erred}, 3 of the 4 hosts of life 1" in " ".join(printed.split())


def test_a_save_whose_last_line_was_never_written_has_ended(job):
    job.save(ends=False)
    job.lines.append({"line": "ended", "id": 1, "t": job.t, "state": "committed"})
    printed = terminal(diagnosis_document(found_of(job.write(close=False))))
    assert "NOTHING TO SAY: 1 save committed, and nothing tells how long" in printed
