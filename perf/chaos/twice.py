"""Twice: the same command is started two or three times at once."""

from __future__ import annotations

import random
import time
from typing import Final

from perf.chaos import checks
from perf.chaos.place import Place, Undisturbed

_PATIENCE_S: Final = 240.0
_REFUSED: Final = 2


def disturb(place: Place, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Starts a command several times; each does its work or is refused with a reason."""
    number = draw.choice([2, 2, 3])
    commands = []
    for _ in range(number):
        commands += place.begin()
        time.sleep(draw.choice([0.0, 0.0, draw.uniform(0, undisturbed.seconds)]))
    codes = [command.code(_PATIENCE_S) for command in commands]
    for command, code in zip(commands, codes, strict=True):
        checks.check_code(code, {place.scenario.code, _REFUSED}, command)
        checks.check_said(command)
    if place.scenario.code not in codes:
        raise checks.NotHeld(f"all were refused: {commands[0].said.strip()[-200:]}")
    return f"at_once_{number}=1 refused={codes.count(_REFUSED)}"
