"""Kills: every signal, to a command or its group, at a drawn moment."""

import random
import signal
from collections import Counter
from typing import Any, Final

from perf.chaos import checks
from perf.chaos.place import Place, Undisturbed
from perf.chaos.processes import Command

SIGNALS: Final = (*checks.KINDLY, signal.SIGQUIT, signal.SIGKILL)
IN_A_ROW: Final = 10
"""Kills of one trial, before its command may come to its end."""

_WAITS_S: Final = 15.0
_OTHERS: Final = {0, 1, 75, 130}
"""Exit codes of hosts that see another one end."""


def disturb(
    place: Place, undisturbed: Undisturbed, draw: random.Random, *, in_a_row: int = IN_A_ROW
) -> str:
    """Kills a command again and again, and returns which signals it got."""
    made: Counter[str] = Counter()
    for _ in range(in_a_row):
        number, group = draw.choice(SIGNALS), draw.random() < 0.5
        struck = draw.randrange(place.scenario.hosts)
        before = checks.temporary(place)
        orderly = number in checks.KINDLY
        command, others = _strike(place, undisturbed, draw, number, group=group, struck=struck)
        code = command.code(checks.GRACE_S if orderly else checks.GONE_S)
        said = f"{number.name} to the {'group' if group else 'process'}"
        try:
            _check(command, code, {place.scenario.code, _ended(number)}, own=number)
            for other in others:
                _end_other(other)
            checks.check_gone(place)
            if orderly and code == checks.INTERRUPTED and not others:
                checks.check_clean(place, before)
        except checks.NotHeld as found:
            raise checks.NotHeld(f"after {said}: {found}") from None
        made[f"{number.name}{'g' if group else ''}"] += 1
    return " ".join(f"{name}={count}" for name, count in sorted(made.items()))


def _end_other(other: Command) -> None:
    """Waits for a host that lost another one; one that waits for it to come, is told to end."""
    code = other.code(_WAITS_S)
    if code is None:
        other.signal(signal.SIGTERM, group=False)
        code = other.code(checks.GRACE_S)
    _check(other, code, _OTHERS, own=signal.SIGTERM)
    checks.check_said(other)


def _strike(
    place: Place,
    undisturbed: Undisturbed,
    draw: random.Random,
    number: signal.Signals,
    *,
    group: bool,
    struck: int,
) -> tuple[Command, list[Command]]:
    """Starts the command and kills it, at a moment or when it touches a file for the n-th time."""
    by_event = draw.random() < 0.5 and struck == 0
    fault: dict[str, Any] | None = None
    if by_event:
        at = draw.randint(1, max(1, undisturbed.events))
        fault = {"signal": int(number), "group": group, "at": at}
    commands = place.begin(fault)
    command = commands[struck]
    if by_event:
        command.code(checks.PATIENCE_S)
    else:
        command.code(draw.uniform(0, 1.1 * undisturbed.seconds))
        command.signal(number, group=group)
    return command, [other for other in commands if other is not command]


def _ended(number: signal.Signals) -> int:
    """Returns the exit code of a command that heard a signal."""
    return checks.INTERRUPTED if number in checks.KINDLY else -number


def _check(command: Command, code: int | None, allowed: set[int], *, own: signal.Signals) -> None:
    """Checks how a command ended; where Python itself begins or ends, the signal's way is right."""
    checks.check_code(code, allowed if command.hears else allowed | {-own, 1}, command)
    if command.hears:
        checks.check_said(command)
