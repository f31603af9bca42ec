"""Disturbances, by name: what is done to a command before it may come to its end."""

import contextlib
import errno
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from perf.chaos import checks, kills, pruned, storage
from perf.chaos.place import HURRY, Place, Undisturbed
from perf.chaos.processes import marked

ERRORS: Final = (errno.EIO, errno.EACCES, errno.ESTALE, errno.ENOSPC)
"""Errors of a disk, of an object store that says 403, and of a network file system."""

_CLOCK: Final = Path(__file__).parent / "inside" / "clock.c"
_JUMPS: Final = (-86_400, -3600, -61, 61, 3600, 86_400, 31_536_000)
_REFUSED: Final = 2
_STALE_S: Final = 60 / HURRY


def jumping_clock(place: Place, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Sets the clock of all processes of a command to another time, twice."""
    library, told = place.folder / "clock.so", place.folder / "clock"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, _CLOCK, "-ldl"], check=True)
    told.write_text("0")
    command = place.begin(variables={"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(told)})[0]
    for _ in range(2):
        command.code(draw.uniform(0, 0.5) * undisturbed.seconds)
        told.write_text(str(draw.choice(_JUMPS)))
    checks.check_end(command, {place.scenario.code})
    return "jumps=2"


def twice(place: Place, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Starts a command two or three times; each does its work or is refused with a reason."""
    number = draw.choice([2, 2, 3])
    commands = []
    for _ in range(number):
        commands += place.begin()
        time.sleep(draw.choice([0.0, 0.0, draw.uniform(0, undisturbed.seconds)]))
    allowed = {place.scenario.code, _REFUSED}
    codes = [checks.check_end(command, allowed) for command in commands]
    if place.scenario.code not in codes:
        raise checks.NotHeld(f"all were refused: {commands[0].said.strip()[-200:]}")
    return f"at_once_{number}=1 refused={codes.count(_REFUSED)}"


def freezes(place: Place, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Stops a command at a moment, starts it a second time or not, and lets it go on."""
    command = place.begin()[0]
    command.code(draw.uniform(0, undisturbed.seconds))
    everything, second = draw.random() < 0.5, draw.random() < 0.5
    frozen = list(marked(place.folder)) if everything else [command.process.pid]
    _tell(frozen, signal.SIGSTOP)
    seconds = draw.choice([0.2, 1.0, 1.5 * _STALE_S])
    # The second one waits for a counter that stands still, and takes over.
    others = place.begin() if second else []
    for other in others:
        other.code(max(seconds, 3 * _STALE_S))
    time.sleep(seconds)
    _tell(frozen, signal.SIGCONT)
    # Of two, the one that comes too late is refused or has lost its lease.
    allowed = {place.scenario.code} | (checks.REFUSALS if second else set())
    for one in (*others, command):
        checks.check_end(one, allowed)
    return f"frozen=1 frozen_{'with_a_second' if second else 'alone'}=1"


def _tell(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def errors(place: Place, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Has the n-th read or write below the results fail, once or from then on."""
    number, kind = draw.choice(ERRORS), draw.choice(["read", "write"])
    fault = {
        "errno": number,
        "kind": kind,
        "at": draw.randint(1, max(1, undisturbed.events // 2)),
        "lasting": draw.random() < 0.5,
        "struck": str(place.folder / "struck"),
    }
    everywhere = draw.random() < 0.3 and place.scenario.name in ("run", "pipeline")
    command = place.begin(fault, everywhere=everywhere)[0]
    try:
        code = checks.check_end(command, {place.scenario.code} | checks.REFUSALS)
        checks.check_gone(place)
        if code == place.scenario.code:  # it ended as if nothing had happened
            checks.check_results(place, undisturbed.found)
    except checks.NotHeld as found:
        said = f"{errno.errorcode[number]} on {kind} {fault['at']}"
        raise checks.NotHeld(f"{said}: {found}") from None
    if not (place.folder / "struck").exists():
        return "too_late=1"
    ended = "as_undisturbed" if code == place.scenario.code else f"with_{code}"
    return f"{errno.errorcode[number]}_on_{kind}=1 ended_{ended}=1"


Disturbance = Callable[[Place, Undisturbed, random.Random], str]
"""Disturbs a command, checks how it ends, and returns what was done; raises `NotHeld`."""

BY_NAME: Final[dict[str, Disturbance]] = {
    "kills": kills.disturb,
    "freezes": freezes,
    "full": storage.full,
    "read_only": storage.read_only,
    "renamed": storage.renamed,
    "gone": storage.gone,
    "errors": errors,
    "clock": jumping_clock,
    "twice": twice,
    "nights": pruned.nights,
}

DISTURBED: Final[dict[tuple[str, str], int]] = {
    ("run", "freezes"): 30,
    ("ab", "freezes"): 10,
    ("run", "full"): 20,
    ("ab", "full"): 5,
    ("report", "full"): 10,
    ("capture", "full"): 10,
    ("run", "read_only"): 10,
    ("report", "read_only"): 5,
    ("capture", "read_only"): 5,
    ("run", "renamed"): 10,
    ("ab", "renamed"): 5,
    ("run", "gone"): 10,
    ("ab", "gone"): 5,
    ("run", "errors"): 60,
    ("ab", "errors"): 20,
    ("report", "errors"): 40,
    ("capture", "errors"): 40,
    ("run", "clock"): 10,
    ("ab", "clock"): 5,
    ("run", "twice"): 15,
    ("ab", "twice"): 5,
    ("report", "twice"): 10,
    ("capture", "twice"): 10,
    ("prune", "nights"): 60,
}
"""Trials that `make chaos` makes beside kills, each of one disturbance."""
