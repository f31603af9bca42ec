"""Locks held by this process, which its workers inherit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

_HELD: list[int] = []


def held_locks() -> tuple[int, ...]:
    """Returns the descriptors of the locks held now.

    A lock is free once all processes that hold it have ended: nobody measures beside an orphan.
    """
    return tuple(_HELD)


@contextlib.contextmanager
def shared_with_workers(descriptor: int) -> Iterator[None]:
    """Has workers that start meanwhile hold a lock, too."""
    _HELD.append(descriptor)
    try:
        yield
    finally:
        _HELD.remove(descriptor)
