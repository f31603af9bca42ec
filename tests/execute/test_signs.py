"""Signs of a process, read from /proc."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orbax_bench_core.execute.liveness import kernel_stacks, read_signs, sleepers

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


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


@pytest.mark.slow
def test_a_process_that_is_stopped_shows_where_it_stands():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        process.send_signal(signal.SIGSTOP)
        deadline = time.monotonic() + 60
        while not read_signs(process.pid, ended=False, exit_code=None).stopped:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert f"thread {process.pid} (" in kernel_stacks(process.pid)
        assert "state T" in kernel_stacks(process.pid)
    finally:
        process.kill()
        process.wait()
