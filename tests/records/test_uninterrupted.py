"""Interrupts that wait."""

import os
import signal

import pytest

from orbax_bench_core.records.uninterrupted import uninterrupted


def test_an_interrupt_comes_at_the_end_of_the_block():
    done = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == [True]
