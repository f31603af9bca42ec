"""State of the page cache that loads met, in a word, and how to measure the other one."""

from collections.abc import Iterable, Sequence
from typing import Final

from orbax_bench_core.measure import RESIDENT_SHARE, TOLERATED_SHARE
from orbax_bench_core.records import Repeat

_LOADS: Final = frozenset(("load", "restore"))
_OTHER: Final = {"warm": "cold", "cold": "warm"}


def cache_states(repeats: Iterable[Repeat]) -> dict[str, str]:
    """Returns by load where its checkpoint lay: the page cache was `warm`, `cold` or `mixed`.

    It is `unknown` of a load before which nobody looked, such as one from a bucket.
    """
    shares: dict[str, list[float]] = {}
    for repeat in repeats:
        for operation, _ in repeat.seconds():
            if operation in _LOADS:
                shares.setdefault(operation, [])
        for (operation, _), by_host in repeat.values(RESIDENT_SHARE.name).items():
            shares.setdefault(operation, []).extend(by_host.values())
    return {operation: _cache_state(found) for operation, found in shares.items()}


def _cache_state(shares: Sequence[float]) -> str:
    if not shares:
        return "unknown"
    if min(shares) >= 1 - TOLERATED_SHARE:
        return "warm"
    return "cold" if max(shares) <= TOLERATED_SHARE else "mixed"


def other_cache(states: Iterable[str]) -> str:
    """Returns how to measure loads in the other state; empty if they are in none or in both."""
    known = {state for state in states if state in _OTHER}
    if len(known) != 1:
        return ""
    (state,) = known
    said = f"Loads are {state} (the page cache); `--override execution.cache={_OTHER[state]}`"
    return f"{said} and another output directory measure them {_OTHER[state]}."
