"""Freezes: a command is stopped for a while, with its group or all that it has started."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from typing import Final

from perf.chaos import checks
from perf.chaos.place import HURRY, Place, Undisturbed
from perf.chaos.processes import marked

_PATIENCE_S: Final = 180.0
_STALE_S: Final = 60 / HURRY


def disturb(place: Place, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Stops a command at a moment, starts it a second time or not, and lets it go on."""
    command = place.begin()[0]
    deadline = time.monotonic() + draw.uniform(0, undisturbed.seconds)
    while command.code(0.02) is None and time.monotonic() < deadline:
        pass
    everything, second = draw.random() < 0.5, draw.random() < 0.5
    frozen = list(marked(place.folder)) if everything else [command.process.pid]
    _tell(frozen, signal.SIGSTOP)
    codes, seconds = [], draw.choice([0.2, 1.0, 1.5 * _STALE_S])
    if second:  # it waits for a counter that stands still, and takes over
        other = place.begin()[0]
        codes.append((other, other.code(max(seconds, 3 * _STALE_S))))
    time.sleep(seconds)
    _tell(frozen, signal.SIGCONT)
    codes = [(other, other.code(_PATIENCE_S)) for other, _ in codes]
    codes.append((command, command.code(_PATIENCE_S)))
    for one, code in codes:
        # Of two, the one that comes too late is refused or has lost its lease.
        allowed = {place.scenario.code} | ({1, 2} if second else set())
        checks.check_code(code, allowed, one)
        checks.check_said(one)
    if place.scenario.code not in [code for _, code in codes] and not second:
        raise checks.NotHeld(f"none came to its end: {codes}")
    return f"frozen=1 frozen_{'with_a_second' if second else 'alone'}=1"


def _tell(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
