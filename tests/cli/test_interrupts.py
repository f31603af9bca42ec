"""Signals that end a command in an orderly way."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest
from etils import epath

from orbax_bench_core.cli.main import run_command_line
from orbax_bench_core.files import clear_own, create_exclusively
from orbax_bench_core.interrupts import interrupted_when_told

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
