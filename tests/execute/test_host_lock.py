import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.lock import measuring_lock

ADVICE = "--no-lock measures at the same time, and each disturbs the other"
HOLD = """
import pathlib, sys, time
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.lock import measuring_lock
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
        assert told.wait(60)
        assert second.is_alive()
        holder.kill()
        second.join(60)
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
    other.join(60)
    assert said == [f"waiting: process 123 is measuring on this machine; {ADVICE}"]


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
    other.join(60)
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


def held(lock_file):
    """Holds the lock, and returns what was said meanwhile."""
    said = []
    with measuring_lock(said.append, lock_file=lock_file):
        pass
    return said


def test_a_link_at_its_place_is_not_followed(tmp_path):
    precious, lock_file = tmp_path / "precious", tmp_path / "x.lock"
    precious.write_text("kept")
    lock_file.symlink_to(precious)
    (line,) = held(lock_file)
    assert "cannot be used (Too many levels of symbolic links)" in line
    assert "runs of other users are not held off" in line
    assert precious.read_text() == "kept"
    assert (tmp_path / f"x-{os.getuid()}.lock").exists()


def test_a_second_name_of_another_file_is_locked_and_not_written(tmp_path):
    precious, lock_file = tmp_path / "precious", tmp_path / "x.lock"
    precious.write_text("kept")
    os.link(precious, lock_file)
    assert held(lock_file) == []
    assert precious.read_text() == "kept"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_waited_for(tmp_path, make):
    make(tmp_path / "x.lock")
    (line,) = held(tmp_path / "x.lock")
    assert "x.lock cannot be used" in line


def test_where_nothing_can_be_used_it_says_so(tmp_path):
    (tmp_path / "x.lock").mkdir()
    (tmp_path / f"x-{os.getuid()}.lock").mkdir()
    with pytest.raises(UserError, match="take them away, or measure with --no-lock"):
        held(tmp_path / "x.lock")


@pytest.fixture
def own_folder():
    """A folder outside that of pytest, which every pytest that starts closes to other users."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
@pytest.mark.parametrize(("mode", "used"), [(0o644, "x.lock"), (0o600, "x-65534.lock")])
def test_the_file_of_another_user_shuts_nobody_out(own_folder, mode, used):
    own_folder.chmod(0o1777)
    lock_file = own_folder / "x.lock"
    lock_file.write_text("root's")
    lock_file.chmod(mode)
    # Another user may not be allowed to read the modules.
    becoming = "import os\nos.setgid(65534)\nos.setuid(65534)\nwith measuring"
    holder = [sys.executable, "-c", HOLD.replace("with measuring", becoming), str(lock_file)]
    done = subprocess.run(
        holder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["held"]), done.stderr
    assert (own_folder / used).exists()
    assert lock_file.read_text() == "root's"
