"""Interrupts that some code has lost, and deadlines."""

import contextlib
import os
import signal
import threading

import pytest

from orbax_bench_core import interrupts


@pytest.fixture(autouse=True)
def usual_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def lose():
    """Interrupts this process in code that takes no notice."""
    with contextlib.suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_what_goes_on_after_a_lost_interrupt_is_interrupted_when_it_asks():
    asked = []
    with pytest.raises(interrupts.Terminated, match="SIGINT"), interrupts.interrupted_when_told():
        lose()
        asked.append(True)
        interrupts.raise_if_told()
    assert asked == [True]


def test_an_error_that_was_made_of_an_interrupt_is_one(capsys):
    with pytest.raises(interrupts.Terminated), interrupts.interrupted_when_told():
        lose()
        raise TypeError("validators cannot be built")
    said = "interrupted; what ran then ended with TypeError('validators cannot be built')\n"
    assert capsys.readouterr().err == said


def test_what_came_to_its_end_is_not_interrupted():
    with interrupts.interrupted_when_told():
        lose()


def test_an_error_of_a_command_that_was_not_told_stays_what_it_is():
    with pytest.raises(TypeError), interrupts.interrupted_when_told():
        raise TypeError


def test_an_answer_in_time_is_returned_and_an_error_raised():
    assert interrupts.in_time(lambda: 7, 10) == 7
    with pytest.raises(KeyError, match="mine"):
        interrupts.in_time(lambda: {}["mine"], 10)


def test_what_takes_longer_is_left_to_itself():
    let_go = threading.Event()
    with pytest.raises(interrupts.Late):
        interrupts.in_time(let_go.wait, 0.05)
    let_go.set()
