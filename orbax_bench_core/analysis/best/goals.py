"""Goals of a choice: a measure of a repeat, or several of them with weights."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from orbax_bench_core.analysis.best.model import Goal
from orbax_bench_core.errors import UserError, did_you_mean

BLOCKING: Final = "blocking"
SAVE: Final = "save"
LOAD: Final = "load"
BYTES: Final = "bytes"
MEMORY: Final = "memory"

MEASURES: Final = (BLOCKING, SAVE, LOAD, BYTES, MEMORY)
"""Measures that every sweep is ranked by, as far as its repeats have them."""

FRONT: Final = (SAVE, LOAD, BYTES)
"""Measures of the Pareto front."""

OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    BLOCKING: ("save_blocking",),
    SAVE: ("save",),
    LOAD: ("load", "restore"),
}
"""Operations that a measure is the time of; the first that a repeat has."""

_OF_LOADS: Final = frozenset(("load", "restore", "first_step"))
_OF_SAVES: Final = re.compile(r"save\w*|blocking|bytes|step_p99|step_max|steps_\w+|train")
_LOADS_ONLY: Final = frozenset(
    (
        "restore_devices",
        "use_load_and_broadcast",
        "restore_concurrent_gb",
        "primary_replica_id",
        "broadcast_memory_limit_bytes",
        "broadcast_memory_scaling_factor",
        "mmap",
    )
)
_SAVES_ONLY: Final = frozenset(
    (
        "async_enabled",
        "enable_async_checkpointing",
        "enable_async_save",
        "save_concurrent_gb",
        "device_host_concurrent_gb",
        "save_device_host_concurrent_gb",
    )
)

RECOVERY: Final = "recovery"
"""From a kill to the next step; only drills measure it."""

STEP_P99: Final = "step_p99"
STEP_MAX: Final = "step_max"
"""Slowest steps of a training that saves; goals beside `MEASURES`."""

_TERM: Final = re.compile(r"\s*([A-Za-z_][\w.\[\]-]*)\s*(?:=\s*([^=\s]+)\s*)?")


def parse_goal(text: str) -> Goal:
    """Reads a goal: `save`, or measures with weights such as `blocking=3,load=1`.

    A measure is one of `MEASURES`, or the name of an operation. With weights the goal is the
    weighted geometric mean: one percent of blocking time counts as three percent of a load.
    """
    weights: dict[str, float] = {}
    for part in text.split(","):
        match = _TERM.fullmatch(part)
        weight = _weight(match[2]) if match else None
        if match is None or weight is None:
            raise UserError(
                f"--goal {text!r}: give a measure ({', '.join(MEASURES)}, or an operation), or "
                "several with weights above 0, such as blocking=3,load=1"
            )
        if match[1] in weights:
            raise UserError(f"--goal {text!r}: {match[1]} stands there twice; give it one weight")
        weights[match[1]] = weight
    total = sum(weights.values())
    return Goal(text=text, weights={name: weight / total for name, weight in weights.items()})


def _weight(text: str | None) -> float | None:
    try:
        weight = 1.0 if text is None else float(text)
    except ValueError:
        return None
    return weight if weight > 0 and math.isfinite(weight) else None


def goal_value(goal: Goal, values: Mapping[str, float]) -> float | None:
    """Returns the value of a goal in one repeat; None where the repeat lacks one of its measures.

    A single measure keeps its unit, seconds or bytes; a weighted goal has none.
    """
    found = [(values.get(name, 0.0), weight) for name, weight in goal.weights.items()]
    if any(value <= 0 for value, _ in found):
        return None
    if len(found) == 1:
        return found[0][0]
    return math.exp(sum(weight * math.log(value) for value, weight in found))


def acts_on(option: str, goal: Goal) -> bool:
    """Returns whether an option can change a goal: one of loads alone changes no save."""
    if option in _LOADS_ONLY:
        return not all(_OF_SAVES.fullmatch(measure) for measure in goal.weights)
    return option not in _SAVES_ONLY or not set(goal.weights) <= _OF_LOADS


def known_goal(goal: Goal, measured: frozenset[str]) -> Goal:
    """Returns the goal."""
    for name in goal.weights:
        if name not in measured:
            raise UserError(
                f"--goal {goal.text!r}: no repeat has measured {name!r}; "
                f"{did_you_mean(name, sorted(measured))}"
            )
    return goal
