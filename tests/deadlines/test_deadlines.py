"""What has to end in time."""

import threading

import pytest

from orbax_bench_core.deadlines import Late, in_time


def test_an_answer_in_time_is_returned_and_an_error_raised():
    assert in_time(lambda: 7, 10) == 7
    with pytest.raises(KeyError, match="mine"):
        in_time(lambda: {}["mine"], 10)


def test_what_takes_longer_is_left_to_itself():
    let_go = threading.Event()
    with pytest.raises(Late):
        in_time(let_go.wait, 0.05)
    let_go.set()
