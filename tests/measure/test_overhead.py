"""The clocks of threads."""

from __future__ import annotations

import threading

from orbax_bench_core.measure import block


def test_a_thread_keeps_its_clock() -> None:
    assert block.this_thread() is block.this_thread()


def test_threads_do_not_share_a_clock() -> None:
    others: list[block.ThreadClock] = []
    thread = threading.Thread(target=lambda: others.append(block.this_thread()))
    thread.start()
    thread.join()

    assert others[0] is not block.this_thread()
