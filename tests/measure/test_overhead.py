"""The clocks of threads."""

from __future__ import annotations

import threading

from orbax_bench_core.measure import overhead


def test_a_thread_keeps_its_clock() -> None:
    assert overhead.this_thread() is overhead.this_thread()


def test_threads_do_not_share_a_clock() -> None:
    others: list[overhead.ThreadClock] = []
    thread = threading.Thread(target=lambda: others.append(overhead.this_thread()))
    thread.start()
    thread.join()

    assert others[0] is not overhead.this_thread()
