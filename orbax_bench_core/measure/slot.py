"""A place for at most one process-wide value."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Slot(Generic[T]):
    """Holds a value while a context manager is open."""

    def __init__(self, what: str) -> None:
        self._value: T | None = None
        self._what = what
        self._lock = threading.Lock()

    def get(self) -> T | None:
        """The value now; None when the slot is empty."""
        return self._value

    @contextlib.contextmanager
    def holding(self, value: T) -> Iterator[None]:
        """Holds `value` until the block ends.

        Raises:
            RuntimeError: The slot is taken.
        """
        with self._lock:
            if self._value is not None:
                raise RuntimeError(
                    f"{self._what} is already active in this process, and it does not nest; "
                    f"leave the first `with {self._what}(...)` block before the second"
                )
            self._value = value
        try:
            yield
        finally:
            self._value = None
