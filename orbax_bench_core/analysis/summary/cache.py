"""Flags of the page cache that operations met, against the one that a point asks for."""

from __future__ import annotations

from collections.abc import Sequence

from orbax_bench_core.config import Conditions
from orbax_bench_core.measure import TOLERATED_SHARE


def cache_flag(conditions: Conditions, operation: str, shares: Sequence[float]) -> str | None:
    """Returns what is wrong with the page cache that an operation met, or None."""
    if not shares:
        return None
    if conditions.cache == "cold" and max(shares) > TOLERATED_SHARE:
        return (
            f"{operation} claims to be cold, but up to {max(shares):.0%} of the checkpoint was in "
            "the page cache: do not read it as a cold load"
        )
    if conditions.cache == "warm" and min(shares) < 1 - TOLERATED_SHARE:
        return (
            f"{operation} claims to be warm, but only {min(shares):.0%} of the checkpoint was in "
            "the page cache: there may be too little memory for it"
        )
    return None


def uncontrolled_flag(conditions: Conditions, loads: Sequence[str]) -> str | None:
    """Returns that nothing controlled the page cache of a point that asks for a cold one."""
    if conditions.cache == "cold" and not loads:
        return (
            "cache: cold had no effect: the checkpoint is remote, or the benchmark does not call "
            "context.prepare_load"
        )
    return None
