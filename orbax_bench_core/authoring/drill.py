"""Drill of a recovery: training that is killed from outside, and the life that goes on after it."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Killed:
    """End of the life before, by the clock of the process that watched it.

    Attributes:
        steps: Training steps that were done.
        notice_s: Seconds from the kill to the end of file on the pipe of the process that died.
        start_s: Seconds that new processes took from their start until JAX was up in all of them.
        peers_s: Seconds from the kill until a process that was not killed ended by itself; None
            where there was none, or it was not waited for.
    """

    steps: int
    notice_s: float
    start_s: float
    peers_s: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Drill:
    """One life of a repeat in which training is killed once.

    Attributes:
        killed: How the life before ended; None in the first one, which trains until it is killed.
    """

    killed: Killed | None = None
