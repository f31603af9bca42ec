"""Garbage collection between repeats, so that none of it falls into an operation."""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
from collections.abc import Iterator
from typing import Final

_repeats: Final = itertools.count()


@contextlib.contextmanager
def importing(module: str) -> Iterator[None]:
    """Freezes all objects once a module is imported; does nothing where it is imported already.

    Imports make hundreds of thousands of objects that stay. To search them for garbage takes a
    quarter of the time of the imports, and 0.1 s before every repeat.
    """
    if module in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def collect_garbage() -> None:
    """Collects garbage before a repeat; what the first one has imported is not searched again."""
    gc.collect()
    if next(_repeats) == 1:
        gc.freeze()


def collect_for_the_last_time() -> None:
    """Collects garbage, and freezes the rest, which the interpreter would search as it ends."""
    gc.collect()
    gc.freeze()
