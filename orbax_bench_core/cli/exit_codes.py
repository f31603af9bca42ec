"""Exit codes: one table for every command."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final


class Exit(enum.IntEnum):
    """What a command ends with."""

    OK = 0
    FAILED = 1
    """Something failed, or nothing was measured."""
    INVALID = 2
    """The user's own mistake; the same command would fail again."""
    REGRESSION = 3
    INCONCLUSIVE = 4
    """No verdict; also one that rests on rules of one's own after the fact."""
    LOST_HEAD = 75
    """An agent lost process 0; the same commands on all hosts resume."""
    INTERRUPTED = 130


RETRIED: Final = (Exit.FAILED, Exit.LOST_HEAD)
"""Codes after which the same command may do better: engines retry these, and no other."""

_RANKED: Final = (
    Exit.INTERRUPTED,
    Exit.INVALID,
    Exit.REGRESSION,
    Exit.FAILED,
    Exit.LOST_HEAD,
    Exit.INCONCLUSIVE,
)


def worst(codes: Iterable[int]) -> int:
    """Returns the code of a command that did several things.

    A regression goes before a failure, which goes before what is inconclusive: whoever reads one
    number must not miss the verdict.
    """
    found = set(codes)
    return next((int(code) for code in _RANKED if code in found), int(Exit.OK))
