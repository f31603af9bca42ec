"""Errors: a read or a write is refused by the system, once or from then on."""

from __future__ import annotations

import errno
import random
from typing import Final

from perf.chaos import checks
from perf.chaos.place import Place, Undisturbed

ERRORS: Final = (errno.EIO, errno.EACCES, errno.ESTALE, errno.ENOSPC)
"""Errors of a disk, of an object store that says 403, and of a network file system."""

_PATIENCE_S: Final = 120.0
_ENDS: Final = {1, 2}


def disturb(place: Place, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Has the n-th read or write below the results fail."""
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
    code = command.code(_PATIENCE_S)
    said = f"{errno.errorcode[number]} on {kind} {fault['at']}"
    try:
        checks.check_code(code, {place.scenario.code} | _ENDS, command)
        checks.check_said(command)
        checks.check_gone(place)
        checks.check_ended(place, code, undisturbed.found)
    except checks.NotHeld as found:
        raise checks.NotHeld(f"{said}: {found}") from None
    if not (place.folder / "struck").exists():
        return "too_late=1"
    ended = "as_undisturbed" if code == place.scenario.code else f"with_{code}"
    return f"{errno.errorcode[number]}_on_{kind}=1 ended_{ended}=1"
