"""Clock: the time of day jumps while a command runs, forwards and backwards."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path
from typing import Final

from perf.chaos import checks
from perf.chaos.place import Place, Undisturbed

_SOURCE: Final = Path(__file__).parent / "inside" / "clock.c"
_JUMPS: Final = (-86_400, -3600, -61, 61, 3600, 86_400, 31_536_000)
_PATIENCE_S: Final = 240.0


def disturb(place: Place, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Sets the clock of all processes of a command to another time, twice."""
    library, told = place.folder / "clock.so", place.folder / "clock"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, _SOURCE, "-ldl"], check=True)
    told.write_text("0")
    command = place.begin(variables={"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(told)})[0]
    for _ in range(2):
        deadline = time.monotonic() + draw.uniform(0, 0.5) * undisturbed.seconds
        while command.code(0.02) is None and time.monotonic() < deadline:
            pass
        told.write_text(str(draw.choice(_JUMPS)))
    checks.check_code(command.code(_PATIENCE_S), {place.scenario.code}, command)
    checks.check_said(command)
    return "jumps=2"
