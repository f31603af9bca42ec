"""Garbage collection between repeats, so that none of it falls into an operation."""

from __future__ import annotations

import gc
import itertools
from typing import Final

_MANY: Final = 5_000
"""Objects that take about a millisecond to look at. TensorStore leaves some hundred per repeat:
each list of its metrics is kept for ever."""

_ALL_AT: Final = 8
"""Every so many times, all are looked at again."""

_turns = itertools.count()


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
