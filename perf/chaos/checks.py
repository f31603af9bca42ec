"""Checks after a disturbance, and after the command was run again."""

import difflib
import json
import signal
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final

from perf.chaos.place import NotHeld, Place, ended_with
from perf.chaos.processes import Command, left_after
from perf.chaos.results import doubled

GONE_S: Final = 5.0
GRACE_S: Final = 30.0
PATIENCE_S: Final = 240.0
"""Within which a command ends that nobody tells to end."""
REFUSALS: Final = frozenset({1, 2})
INTERRUPTED: Final = 130

KINDLY: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals after which a command ends itself, and cleans up."""
_TRACEBACK: Final = "Traceback (most recent call last)"
_SHOWN: Final = 6


def check_said(command: Command) -> None:
    """Checks that people see no traceback."""
    said = command.said
    if _TRACEBACK in said:
        raise NotHeld(f"a traceback: {' | '.join(said.strip().splitlines()[-5:])}")


def check_code(code: int | None, allowed: AbstractSet[int], command: Command) -> None:
    """Checks the exit code of a command that was disturbed."""
    if code not in allowed:
        raise NotHeld(f"none of {sorted(allowed)}: {ended_with(command, code)}")


def check_end(command: Command, allowed: AbstractSet[int]) -> int | None:
    """Waits until a command ends, checks its exit code and what it says, and returns the code."""
    code = command.code(PATIENCE_S)
    check_code(code, allowed, command)
    check_said(command)
    return code


def check_gone(place: Place) -> None:
    """Checks that no process is left after five seconds."""
    if left := left_after(place.folder, GONE_S):
        raise NotHeld(f"left after {GONE_S:g} s: {left}")


def temporary(place: Place) -> set[Path]:
    """Returns what is temporary in a place."""
    return {*place.results.rglob(".*.tmp"), *place.temporary.rglob("*")}


def check_clean(place: Place, before: AbstractSet[Path] = frozenset()) -> None:
    """Checks that nothing is left of what is temporary, apart from what was there before."""
    found = sorted(temporary(place) - before)
    if found:
        names = [str(path.relative_to(place.folder)) for path in found[:_SHOWN]]
        raise NotHeld(f"{len(found)} files are left: {', '.join(names)}")


def check_results(place: Place, undisturbed: dict[str, Any]) -> None:
    """Checks that results are those of an undisturbed command, and that none is doubled."""
    found = json.loads(json.dumps(place.found()))
    if again := doubled(found):
        raise NotHeld(f"doubled: {again[:_SHOWN]}")
    if found != undisturbed:
        lines = (
            json.dumps(results, indent=1, sort_keys=True).split("\n")
            for results in (undisturbed, found)
        )
        differs = difflib.unified_diff(*lines, "undisturbed", "found", n=0, lineterm="")
        raise NotHeld(f"other results: {' '.join(list(differs)[: _SHOWN * 4])}")
