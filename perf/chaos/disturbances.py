"""Disturbances, by name: what is done to a command before it may come to its end."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from perf.chaos import kills
from perf.chaos.place import Place, Undisturbed

Disturbance = Callable[[Place, Undisturbed, random.Random], str]
"""Disturbs a command, checks how it ends, and returns what was done; raises `NotHeld`."""

DISTURBED: Final[dict[tuple[str, str], int]] = {}
"""How many trials of what `make chaos` makes beside kills."""

BY_NAME: Final[dict[str, Disturbance]] = {
    "kills": kills.disturb,
}
