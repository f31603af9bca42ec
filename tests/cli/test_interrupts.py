"""Signals that end a command in an orderly way, and the modes and owners of what it makes."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from etils import epath

from orbax_bench_core.cli.main import run_command_line
from orbax_bench_core.files import clear_own, create_exclusively
from orbax_bench_core.interrupts import interrupted_when_told
from tests.support.processes import run_cli

ORDERLY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers():
    """As in a process that has just begun; those of the tests come back in the end."""
    before = {number: signal.getsignal(number) for number in ORDERLY}
    usual = (signal.default_int_handler, signal.SIG_DFL, signal.SIG_DFL)
    for number, handler in zip(ORDERLY, usual, strict=True):
        signal.signal(number, handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ORDERLY)
def test_a_command_that_is_told_to_end_does_so_with_130(monkeypatch, run_main, number):
    monkeypatch.setattr(sys, "argv", ["orbax-bench"])
    cleaned = []

    def command():
        try:
            os.kill(os.getpid(), number)
        finally:
            cleaned.append(True)

    assert run_main(lambda: run_command_line(command)).code == 130
    assert cleaned == [True]


@pytest.mark.parametrize("number", ORDERLY)
def test_no_interrupt_is_one_after_which_python_ends_by_a_signal(number):
    with interrupted_when_told(), pytest.raises(KeyboardInterrupt) as told:
        os.kill(os.getpid(), number)
    assert told.type is not KeyboardInterrupt


def test_what_is_ignored_stays_so():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with interrupted_when_told():
        os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_handlers_are_put_back():
    with interrupted_when_told():
        pass
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_nothing_is_left_of_what_was_being_deleted(tmp_path, monkeypatch):
    def told(path):
        os.kill(os.getpid(), signal.SIGTERM)

    def write():
        with contextlib.suppress(KeyboardInterrupt), interrupted_when_told():
            create_exclusively(epath.Path(tmp_path / "a"), b"whole")

    with monkeypatch.context() as changed:
        changed.setattr(Path, "unlink", lambda path, **how: told(path))
        changed.setattr("orbax_bench_core.files.clear_own", lambda: None)
        write()
    assert [path.name for path in tmp_path.glob(".a.*.tmp")]
    with contextlib.suppress(KeyboardInterrupt), interrupted_when_told(clear_own):
        told(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


NOBODYS = 54321
"""A user id that no `/etc/passwd` has."""
UNSHARE = ("unshare", "--user", f"--map-user={NOBODYS}", f"--map-group={NOBODYS}")
SUITE = """\
suite_name: tiny
num_repeats: 1
execution: {warmups: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


def done(*words, user=0):
    """Runs a command as an executor does that sets no umask, on a machine that names no home."""
    command = [sys.executable, "-m", "orbax_bench_core.cli", *map(str, words)]
    become = UNSHARE if user else ()
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "USER", "LOGNAME")}
    return subprocess.run(
        [*become, *command],
        env=environment,
        umask=0,
        capture_output=True,
        text=True,
        check=False,
        cwd=os.fspath(words[-1]),
    )


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() or not shutil.which("unshare"), reason="only root can make files of another user"
)
def test_no_command_needs_the_name_of_a_user_and_what_it_makes_only_its_owner_can_write(tmp_path):
    suite, out = tmp_path / "suite.yaml", tmp_path / "out"
    suite.write_text(SUITE)
    out.mkdir()
    outcome = done("run", suite, "--no-limits", "--no-lock", "-o", out, user=NOBODYS)
    assert outcome.returncode == 0, outcome.stderr
    made = [path for path in out.rglob("*") if not path.is_symlink()]
    for path in (out, *made):
        os.chown(path, NOBODYS, NOBODYS)
    for command in (["run", suite, "--no-limits", "--no-lock", "-o"], ["lineage"]):
        outcome = done(*command, out)
        assert outcome.returncode == 0, outcome.stderr
    made = [path for path in out.rglob("*") if not path.is_symlink()]
    writable = [str(path) for path in made if path.stat().st_mode & 0o022]
    assert writable == []


@pytest.mark.parametrize(
    ("given", "kept"), [(0, 0o022), (0o002, 0o022), (0o027, 0o027), (0o077, 0o077)]
)
def test_a_command_takes_no_right_that_its_caller_keeps_back(tmp_path, monkeypatch, given, kept):
    monkeypatch.setattr(sys, "argv", ["orbax-bench"])
    file = tmp_path / "made"
    before = os.umask(given)
    try:
        run_command_line(file.touch)
        assert os.umask(given) == given
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~kept


def test_an_interrupt_while_modules_are_imported_is_no_traceback(tmp_path):
    """In the first 0.4 s, most of which are imports."""
    (tmp_path / "typer.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    done = run_cli("--help", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
