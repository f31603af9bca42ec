import threading
import time

import pytest

from orbax_bench_core.limits.probes import repeated, timed


def test_tasks_run_side_by_side():
    meeting = threading.Barrier(3)
    timed([lambda: meeting.wait(60)] * 3)
    assert not meeting.broken


@pytest.mark.slow
def test_freeing_what_a_task_returns_is_not_measured():
    freed = []

    class Slow:
        def __del__(self):
            freed.append(time.perf_counter())
            time.sleep(0.2)

    begun = time.perf_counter()
    assert begun + timed([Slow]) <= freed[0]


def test_what_a_task_raises_is_raised():
    def fail():
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        timed([lambda: None, fail])


def test_the_first_of_all_repeats_is_discarded():
    times = iter([9.0, 1.0, 2.0, 3.0])
    assert repeated(3, lambda: next(times)) == [1.0, 2.0, 3.0]
