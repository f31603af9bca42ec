"""Common failure: when points fail for one reason, the rest of a run is given up."""

from collections.abc import Sequence
from typing import Final

from orbax_bench_core.records import ErrorInfo, Repeat
from orbax_bench_core.sweep import SweepPoint

_NO_SPACE: Final = ("No space left on device", "Disk quota exceeded")

ENOUGH: Final = 3
"""Points that fail alike before any has passed, after which the rest is given up."""


class CommonFailure(Exception):
    """The points so far have failed for one reason, for which the rest would fail as well."""


class CommonFailureCheck:
    """Watch over the failures of a run, until a repeat has passed."""

    def __init__(self, points: Sequence[SweepPoint], *, what: str = "point") -> None:
        self._points = len({point.id for point in points})
        self._kinds = {_kind(point) for point in points}
        self._what = what
        self._failed: dict[str, tuple[str, ...]] = {}
        self._reason = ""
        self._over = False

    def look(self, point: SweepPoint, repeat: Repeat) -> None:
        """Looks at a repeat that has ended.

        Raises:
            CommonFailure: As many points as are enough have failed for one reason, and none has
                passed.
        """
        if self._over or repeat.status == "skipped":
            return
        reason = None if repeat.error is None else shared_reason(repeat.error)
        if reason is None or reason != (self._reason or reason):
            self._over = True  # something works, or fails in a way of its own
            return
        self._reason = reason
        self._failed[point.id] = _kind(point)
        failed = len(self._failed)
        if failed < min(ENOUGH, self._points) or set(self._failed.values()) != self._kinds:
            return
        which = f"the only {self._what}" if self._points == 1 else f"all {failed} {self._what}s"
        if failed < self._points:
            which = f"the first {failed} of {self._points} {self._what}s"
        raise CommonFailure(f"{which} failed for the same reason: {reason}")


def _kind(point: SweepPoint) -> tuple[str, ...]:
    """Returns the values that decide which libraries a point needs."""
    environment = "" if point.environment is None else point.environment.name
    return (point.benchmark, environment)


def shared_reason(error: ErrorInfo) -> str | None:
    """Returns why a point failed, if other points may fail for it too: a bug, or a lack."""
    if error.certain:
        return error.said
    return next((words for words in _NO_SPACE if words in error.message), None)
