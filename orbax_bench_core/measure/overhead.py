"""How much of each thread's time measuring itself has taken."""

from __future__ import annotations

import threading


class ThreadClock:
    """What the blocks of one thread share.

    An enclosing block's time is its wall time less the growth of `overhead_ns` while it was open.
    A running total, rather than an amount handed from child to parent, stays right when blocks
    overlap without nesting, as coroutines' do.

    Attributes:
        overhead_ns: Nanoseconds that starting and stopping blocks has cost this thread so far.
        depth: Number of blocks that are open in this thread.
    """

    __slots__ = ("depth", "overhead_ns")

    def __init__(self) -> None:
        self.overhead_ns = 0
        self.depth = 0


_local = threading.local()


def this_thread() -> ThreadClock:
    """The calling thread's clock."""
    try:
        clock: ThreadClock = _local.clock
    except AttributeError:
        clock = _local.clock = ThreadClock()
    return clock
