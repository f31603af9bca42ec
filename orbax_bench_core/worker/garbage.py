"""Garbage collection between repeats, so that none of it falls into an operation."""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
from collections.abc import Iterator
from typing import Final

_MANY: Final = 1_000
"""Objects that take a fifth of a millisecond to look at. TensorStore leaves some hundred per
repeat: each list of its metrics is kept for ever."""

_ALL_AT: Final = 40
"""Every so many times, all are looked at again, which takes as long as a hundred repeats' share."""

_turns = itertools.count(1)


@contextlib.contextmanager
def setting_aside() -> Iterator[None]:
    """Sets aside all that there is after imports, and searches for no garbage meanwhile.

    Imports make objects that stay, and hardly any garbage, so the many searches that so many new
    objects set off are in vain: they take a quarter of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


@contextlib.contextmanager
def importing(module: str) -> Iterator[None]:
    """Sets aside what the import of a module makes; does nothing where it is imported already."""
    with contextlib.nullcontext() if module in sys.modules else setting_aside():
        yield


def collect_for_the_last_time() -> None:
    """Collects garbage, and sets the rest aside, which the end of the process would search again.

    The interpreter does so several times while it takes its modules apart. What nothing refers to
    is freed then as it always is; only cycles that those modules alone hold are left to the kernel.
    """
    gc.collect()
    gc.freeze()


def collect_garbage() -> None:
    """Collects garbage; what has come to stay is set aside, and looked at again now and then.

    Imports make hundreds of thousands of objects, not all of them in the first repeat. How many are
    set aside already is not asked: the answer is found by counting them, which takes longer than
    collecting does.
    """
    gc.collect()
    if len(gc.get_objects()) < _MANY:
        return
    if next(_turns) % _ALL_AT == 0:
        gc.unfreeze()
        gc.collect()
    gc.freeze()
