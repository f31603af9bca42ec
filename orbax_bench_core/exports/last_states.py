"""Last state of each suite: a small file beside its run directories.

It is replaced by compare and swap, so that of two nights one announces a change.
"""

import contextlib
import dataclasses
import datetime
from typing import Any, Final, Literal

import pydantic

from orbax_bench_core import files
from orbax_bench_core.exit_codes import State
from orbax_bench_core.exports.news import News

_TRIES: Final = 20
IN_FLIGHT: Final = datetime.timedelta(seconds=60)
"""After this a claim that was not delivered is of a process that is gone."""


class LastState(files.ResultModel):
    """State of a suite after its last run."""

    version: Literal[1] = 1  # version of this layout
    suite: str
    state: State
    run_id: str  # the run that found it
    begun: datetime.datetime  # when that run began, UTC
    claimed_at: datetime.datetime  # when somebody undertook to announce the state, UTC
    delivered: bool  # whether the announcement arrived

    def due(self, now: datetime.datetime) -> bool:
        """Returns whether the announcement was lost with the process that undertook it."""
        return not self.delivered and now - self.claimed_at > IN_FLIGHT


@dataclasses.dataclass(frozen=True)
class Claim:
    """Right to announce a state: nobody else has it."""

    path: files.AnyPath  # the file of the suite
    state: LastState  # what was written there
    before: State | None  # state until now; None if it is unknown

    def note(self, **changes: Any) -> None:
        """Notes how the announcement went, unless there is a newer state already."""
        # Another run that found the same state may have written its own id since.
        for _ in range(_TRIES):
            held = files.read_if_there(self.path)
            now = None if held is None else _read(held)
            mine = (self.state.state, self.state.claimed_at)
            if held is None or now is None or (now.state, now.claimed_at) != mine:
                return
            if files.swap(self.path, held, _bytes(now.model_copy(update=changes))):
                return


def state_file(folder: files.AnyPath, suite: str) -> files.AnyPath:
    """Returns the file of a suite in a folder of run directories."""
    return folder / files.file_of_suite("notified", suite)


def claim(folder: files.AnyPath, news: News, now: datetime.datetime) -> Claim | None:
    """Undertakes to announce news, unless others have; all is news if no state is known.

    The file of the suite's last state is replaced by compare-and-swap: of several runs that find
    the same news, one announces it.

    Args:
        folder: Where last states are.
        news: What this run has found.
        now: The time, UTC.

    Returns:
        The claim; None if the state is known already, or a later run has told of the suite.

    Raises:
        OSError: It cannot be read or written, or others write it again and again.
    """
    path = state_file(folder, news.suite)
    for _ in range(_TRIES):
        held = files.read_if_there(path)
        before = None if held is None else _read(held)
        if before is not None and before.begun > news.begun:
            return None
        due = before is None or before.state != news.state or before.due(now)
        after = LastState(
            suite=news.suite,
            state=news.state,
            run_id=news.run_id,
            begun=news.begun,
            claimed_at=now if due or before is None else before.claimed_at,
            delivered=not due and before is not None and before.delivered,
        )
        data = _bytes(after)
        if files.create_exclusively(path, data) if held is None else files.swap(path, held, data):
            known = None if before is None else before.state
            return Claim(path, after, known) if due else None
    raise OSError(f"{path}: others write it again and again")


def _read(data: bytes) -> LastState | None:
    with contextlib.suppress(pydantic.ValidationError):
        return LastState.model_validate_json(data)
    return None


def _bytes(state: LastState) -> bytes:
    return state.model_dump_json(indent=1).encode()


def last_states(folder: files.AnyPath) -> list[tuple[files.AnyPath, str, datetime.datetime]]:
    """Returns the files of last states in a folder, each with its suite and when its run began."""
    found = []
    for path in sorted(files.matching(folder, "notified-*.json")):
        state = _read(files.read_if_there(path) or b"")
        if state is not None:
            found.append((path, state.suite, state.begun))
    return found
