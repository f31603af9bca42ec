"""Calls of the recorder's functions, none of whose exceptions reaches the job."""

import collections
import logging
import time
from collections.abc import Callable
from typing import Any, Final

log: Final = logging.getLogger("orbax_bench.recorder")
_MOST: Final = 20
_OFF: Final = (
    "orbax-bench records this job no longer, after %d errors; the job goes on. The last one, in "
    "%s: %r"
)


class Guard:
    """Calls functions until too many of them have raised."""

    def __init__(self) -> None:
        """Is on."""
        self.off = False
        self.errors = 0
        self._raised = 0  # of the errors, those of calls
        self.lines: collections.deque[dict[str, Any]] = collections.deque(maxlen=_MOST)

    def call(self, where: str, function: Callable[..., Any], *args: Any) -> Any:
        """Returns a result, or None after an exception, or once there were too many of them.

        After twenty the recorder switches itself off, and says so once.

        Args:
            where: Name of the place, for the recording.
            function: Part of the recorder; whatever it raises stays out of the job.
            *args: Its arguments.
        """
        if self.off:
            return None
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001 - the job is not to see any
            self.note(where, error)
            self._raised += 1
            if self._raised == _MOST:
                self.off = True
                log.warning(_OFF, _MOST, where, error)
            return None

    def note(self, where: str, error: Exception) -> None:
        """Counts an exception, for the recording."""
        self.errors += 1
        said = {"where": where, "error": repr(error)[:300]}
        self.lines.append({"line": "trouble", "t": time.time(), **said})
