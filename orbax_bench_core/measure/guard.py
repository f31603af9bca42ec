"""Runs what must never break a measured block."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)
_failed: set[str] = set()


def attempt(what: str, call: Callable[[], T], otherwise: T) -> T:
    """Calls `call`; an exception is logged and `otherwise` is returned.

    The first failure of each `what` in the process is a WARNING with its traceback, later ones are
    DEBUG: a collector that fails must not flood the log of a thousand blocks.

    Args:
        what: What is attempted, to follow "could not" in the log.
        call: Takes nothing.
        otherwise: Stands in for the result.
    """
    try:
        return call()
    except Exception:  # noqa: BLE001  # measuring is a guest in the process that it measures
        level = logging.DEBUG if what in _failed else logging.WARNING
        _failed.add(what)
        _log.log(level, "could not %s; the measured code runs on", what, exc_info=True)
        return otherwise
