"""Sentences on the noise of workers."""

from __future__ import annotations

from typing import Final, Literal

from orbax_bench_core.analysis.noise.components import Component, expected_bound
from orbax_bench_core.analysis.noise.passport import Noise, Passport

ENOUGH: Final = 0.01
"""Upper bound of process noise below which one process per arm may stay for a comparison."""

_LIVES: Final = 4
_MOST_WAVES: Final = 2000

NO_WORKERS: Final = (
    "Process noise is not known: no run had several workers of one kind. `orbax-bench calibrate "
    "--suite SUITE --output-directory DIR` measures it"
)


def component(noise: Noise, found: Component, what: Literal["tau", "interaction"]) -> str:
    """Returns one component with its interval, in percent."""
    about = {
        "tau": "one worker process to the next",
        "interaction": "the ratio of two options, one worker to the next",
    }
    chance = "" if found.low else "; chance explains it"
    return (
        f"{noise.operation}, {about[what]}: {_percent(found.estimate)} "
        f"[{_percent(found.low)}, {_percent(found.high)}], {found.workers} workers with "
        f"{found.rounds} operations each{chance}"
    )


def bounds(passport: Passport) -> str:
    """Returns which bounds of process noise the measurement bought, and what a lower one takes."""
    known = [noise for noise in passport.noise if noise.tau is not None]
    if not known:
        return ""
    worst = max(known, key=lambda noise: 0.0 if noise.tau is None else noise.tau.high)
    assert worst.tau is not None
    said = f"Process noise is at most {_percent(worst.tau.high)} ({worst.operation})"
    if worst.tau.high <= ENOUGH:
        return f"{said}: one process per arm may stay for a comparison."
    needed = workers_needed(worst.sigma, worst.tau.rounds)
    more = (
        "that takes more workers than anyone would start"
        if needed is None
        else f"that takes about {needed} workers, if they do not differ"
    )
    return (
        f"{said}: arms in two processes need lives of several workers each, which they have by "
        f"default. One process per arm may stay from {_percent(ENOUGH)} down; {more}."
    )


def workers_needed(sigma: float, rounds: int) -> int | None:
    """Returns the workers whose bound is low enough when they do not differ; None if too many."""
    if expected_bound(sigma, _MOST_WAVES, _LIVES, rounds) > ENOUGH:
        return None
    low, high = 1, _MOST_WAVES
    while low < high:
        middle = (low + high) // 2
        if expected_bound(sigma, middle, _LIVES, rounds) <= ENOUGH:
            high = middle
        else:
            low = middle + 1
    return _LIVES * low


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
