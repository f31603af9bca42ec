"""Disturbances, by name: what is done to a command before it may come to its end."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from perf.chaos import clock, errors, freezes, kills, storage, twice
from perf.chaos.place import Place, Undisturbed

Disturbance = Callable[[Place, Undisturbed, random.Random], str]
"""Disturbs a command, checks how it ends, and returns what was done; raises `NotHeld`."""

BY_NAME: Final[dict[str, Disturbance]] = {
    "kills": kills.disturb,
    "freezes": freezes.disturb,
    "full": storage.full,
    "read_only": storage.read_only,
    "renamed": storage.renamed,
    "gone": storage.gone,
    "errors": errors.disturb,
    "clock": clock.disturb,
    "twice": twice.disturb,
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
}
"""Trials that `make chaos` makes beside kills, each of one disturbance."""
