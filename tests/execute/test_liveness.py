"""Signs of workers, read from /proc, and the judge of them on series that are known in advance."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orbax_bench_core.execute.liveness import PATIENCE, Liveness, Patience, Pulse
from orbax_bench_core.execute.signs import Signs, kernel_stacks, read_signs, sleepers
from tests.support.processes import wait_until


def judge(looks, patience=PATIENCE):
    pulse = Pulse(patience)
    for at, signs in looks:
        pulse.observe(at, signs)
    return pulse.judgement()


def series(*parts, step=1.0):
    """One look a second; each part is a state with its number of looks, and how ticks go on."""
    at, ticks, found = itertools.count(), 100, []
    for state, looks, per_look in parts:
        for _ in range(looks):
            ticks += per_look
            found.append((next(at) * step, Signs(state=state, ticks=ticks)))
    return found


@pytest.mark.parametrize(
    ("parts", "liveness"),
    [
        ([("R", 1, 0)], Liveness.ALIVE),
        ([("S", 5, 1)], Liveness.ALIVE),
        ([("S", 3, 1), ("S", 9, 0)], Liveness.ALIVE),
        # A worker that waits for a frozen peer sleeps just as one that hangs.
        ([("S", 3, 1), ("S", 20, 0)], Liveness.UNKNOWN),
        ([("S", 20, 0)], Liveness.UNKNOWN),
        ([("S", 3, 1), ("T", 2, 0)], Liveness.FROZEN),
        ([("S", 3, 1), ("t", 2, 0)], Liveness.FROZEN),
        ([("S", 3, 1), ("T", 1, 0)], Liveness.UNKNOWN),
        ([("T", 9, 0), ("S", 1, 1)], Liveness.ALIVE),
        # Single steps in a debugger: it has run between the looks.
        ([("t", 9, 1)], Liveness.UNKNOWN),
        ([("D", 11, 0)], Liveness.STALLED),
        ([("D", 9, 0)], Liveness.UNKNOWN),
        # Storage that is slow and answers: it uses the CPU now and then.
        ([("D", 30, 1)], Liveness.ALIVE),
        ([("D", 8, 0), ("S", 1, 0), ("D", 8, 0)], Liveness.UNKNOWN),
        ([("S", 1, 0), ("Z", 1, 0)], Liveness.DEAD),
        ([], Liveness.UNKNOWN),
    ],
)
def test_signs_over_time_are_judged(parts, liveness):
    assert judge(series(*parts)).liveness is liveness


@pytest.mark.parametrize(
    ("signs", "said"),
    [
        (Signs(exit_code=-9), "was killed by SIGKILL"),
        (Signs(exit_code=3), "ended with exit code 3"),
        (Signs(exit_code=-40), "was killed by signal 40"),
        (Signs(state="S", ended=True), "has ended"),
    ],
)
def test_one_look_tells_who_is_dead(signs, said):
    judgement = judge([(0.0, signs)])
    assert (judgement.liveness, judgement.said) == (Liveness.DEAD, said)


def test_signs_that_cannot_be_read_tell_nothing():
    judgement = judge([(float(at), Signs(pid=1)) for at in range(60)])
    assert judgement.liveness is Liveness.UNKNOWN
    assert judgement.said == "shows no signs that can be read"


def test_time_in_which_nobody_looked_does_not_count():
    """Whoever looks may itself have been suspended, perhaps with all of the machine."""
    looks = [(0.0, Signs(state="S", ticks=1)), (1.0, Signs(state="T", ticks=1))]
    assert judge([*looks, (3600.0, Signs(state="T", ticks=1))]).liveness is Liveness.UNKNOWN
    again = [(3600.0, Signs(state="T", ticks=1)), (3601.0, Signs(state="T", ticks=1))]
    judgement = judge([*looks, *again])
    assert (judgement.liveness, judgement.lasting_s) == (Liveness.FROZEN, 1.0)


def test_a_single_look_never_freezes_whatever_the_patience():
    assert judge([(0.0, Signs(state="T"))], Patience(confirm_s=0)).liveness is Liveness.UNKNOWN


def test_a_container_that_is_paused_is_frozen_where_the_kernel_says_so():
    signs = Signs(state="S", ticks=1, wchan="do_freezer_trap")
    judgement = judge([(0.0, signs), (1.0, signs)])
    assert judgement.liveness is Liveness.FROZEN
    assert "freezer of its control group (state S in do_freezer_trap)" in judgement.said


def test_uninterruptible_sleep_names_the_function_of_the_kernel():
    signs = Signs(state="D", ticks=1, wchan="nfs_wait_bit_killable")
    judgement = judge([(float(at), signs) for at in range(13)])
    assert judgement.said == (
        "has been in uninterruptible sleep (state D in nfs_wait_bit_killable) "
        "without using the CPU for 12 s"
    )


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@needs_proc
def test_the_signs_of_this_process_are_read():
    signs = read_signs(os.getpid(), ended=False, exit_code=None)
    assert (signs.pid, signs.state, signs.exit_code) == (os.getpid(), "R", None)
    assert signs.ticks >= 0
    assert signs.hostname
    assert not signs.gone


def test_the_name_of_a_program_may_hold_brackets_and_spaces(tmp_path):
    (tmp_path / "7").mkdir()
    fields = [str(number) for number in range(4, 53)]
    (tmp_path / "7" / "stat").write_text(f"7 (a ) R (b) T {' '.join(fields)}\n")
    signs = read_signs(7, ended=False, exit_code=None, root=str(tmp_path))
    assert (signs.state, signs.ticks) == ("T", 14 + 15)


def test_without_proc_nothing_is_known_but_pipe_and_exit_code(tmp_path):
    signs = read_signs(7, ended=True, exit_code=None, root=str(tmp_path))
    assert (signs.state, signs.ticks, signs.wchan, signs.ended) == ("", None, "", True)
    assert read_signs(7, ended=True, exit_code=-9, root=str(tmp_path)).exit_code == -9
    assert kernel_stacks(7, root=str(tmp_path)) == ""


def test_threads_in_uninterruptible_sleep_are_told_of(tmp_path):
    for thread, state in (("7", "S"), ("8", "D")):
        folder = tmp_path / "7" / "task" / thread
        folder.mkdir(parents=True)
        (folder / "stat").write_text(f"{thread} (io) {state} 1 2 3\n")
        (folder / "wchan").write_text("nfs_wait")
        (folder / "stack").write_text("[<0>] nfs_wait+0x1/0x2\n[<0>] write+0x3/0x4\n")
    assert sleepers(7, root=str(tmp_path)).splitlines() == [
        "thread 8 (io): state D, in nfs_wait",
        "    [<0>] nfs_wait+0x1/0x2",
        "    [<0>] write+0x3/0x4",
    ]
    assert len(kernel_stacks(7, root=str(tmp_path)).splitlines()) == 6


@needs_proc
@pytest.mark.slow
def test_a_process_that_is_stopped_shows_where_it_stands():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: read_signs(process.pid, ended=False, exit_code=None).stopped)
        assert f"thread {process.pid} (" in kernel_stacks(process.pid)
        assert "state T" in kernel_stacks(process.pid)
    finally:
        process.kill()
        process.wait()
