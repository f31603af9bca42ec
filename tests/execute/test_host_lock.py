import os
import re
import subprocess
import sys
import threading

import pytest

from orbax_bench_core.execute.isolation import measuring_lock

ADVICE = "--no-lock measures beside it, and each disturbs the other"
HOLD = """
import pathlib, sys, time
from orbax_bench_core.execute.isolation import measuring_lock
with measuring_lock(print, lock_file=pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_a_second_run_waits_and_says_for_whom(tmp_path):
    lock_file = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock_file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        said = []
        told = threading.Event()

        def waiting(line):
            said.append(line)
            told.set()

        def enter():
            with measuring_lock(waiting, lock_file=lock_file):
                pass

        second = threading.Thread(target=enter)
        second.start()
        assert told.wait(10)
        assert second.is_alive()
        holder.kill()
        second.join(10)
        assert not second.is_alive()
    (line,) = said
    start, _, rest = line.partition(" since ")
    assert start == f"waiting: process {holder.pid} is measuring on this machine"
    since, _, command = rest.partition(": ")
    assert re.fullmatch(r"\d\d:\d\d", since)
    assert command == f"-c {lock_file}; {ADVICE}"


def test_a_holder_of_an_earlier_release_is_named_too(tmp_path):
    lock_file, said = tmp_path / "lock", []
    with measuring_lock(said.append, lock_file=lock_file):
        lock_file.write_text("123")
        other = threading.Thread(target=enter, args=(said, lock_file, "b"))
        other.start()
        other.join(0.1)
    other.join(10)
    assert said == [f"waiting: process 123 is measuring on this machine; {ADVICE}"]


def test_a_free_machine_is_entered_without_a_word(tmp_path):
    said = []
    with measuring_lock(said.append, lock_file=tmp_path / "lock"):
        pass
    assert said == []


def test_processes_of_one_run_share_the_lock_and_those_of_another_wait(tmp_path):
    lock_file, said = tmp_path / "lock", []
    with measuring_lock(said.append, lock_file=lock_file, run="a"):
        with measuring_lock(said.append, lock_file=lock_file, run="a"):
            pass
        assert said == []
        other = threading.Thread(target=enter, args=(said, lock_file, "b"))
        other.start()
        other.join(0.1)
        assert other.is_alive()
        assert said[0].startswith(f"waiting: process {os.getpid()} is measuring on this machine")
    other.join(10)
    assert not other.is_alive()


def enter(said, lock_file, run):
    with measuring_lock(said.append, lock_file=lock_file, run=run):
        pass


def test_the_lock_file_of_another_user_is_locked_too(tmp_path, monkeypatch):
    lock_file = tmp_path / "lock"
    lock_file.write_text("1234")
    real = os.open

    def open_read_only(path, flags, *rest):
        if flags & os.O_RDWR:
            raise PermissionError(path)
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", open_read_only)
    with measuring_lock(print, lock_file=lock_file):
        assert lock_file.read_text() == "1234"
