"""Last state of a suite: a file beside its run directories, and the claim to announce a change."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import re
from typing import TYPE_CHECKING, Final, Literal

import pydantic

from orbax_bench_core.exports.notifications.news import News, State
from orbax_bench_core.files import ResultModel, create_exclusively, read_if_there, swap

if TYPE_CHECKING:
    from etils import epath

_TRIES: Final = 20
_IN_FLIGHT: Final = datetime.timedelta(seconds=60)
"""After this a claim that was not delivered is of a process that is gone."""


class LastState(ResultModel):
    """State of a suite after its last run.

    Attributes:
        version: Version of this layout.
        suite: Name of the suite.
        state: The state.
        run_id: The run that found it.
        begun: When that run began, UTC.
        claimed_at: When somebody undertook to announce the state, UTC.
        delivered: Whether the announcement arrived.
    """

    version: Literal[1] = 1
    suite: str
    state: State
    run_id: str
    begun: datetime.datetime
    claimed_at: datetime.datetime
    delivered: bool

    def due(self, now: datetime.datetime) -> bool:
        """Returns whether the announcement was lost with whoever undertook it."""
        return not self.delivered and now - self.claimed_at > _IN_FLIGHT


@dataclasses.dataclass(frozen=True)
class Claim:
    """Right to announce a state: nobody else has it.

    Attributes:
        path: The file of the suite.
        state: What was written there.
        before: State until now; None where it is unknown.
    """

    path: epath.Path
    state: LastState
    before: State | None

    def delivered(self) -> None:
        """Notes that the announcement arrived, unless there is a newer state already."""
        done = self.state.model_copy(update={"delivered": True})
        swap(self.path, _bytes(self.state), _bytes(done))

    def returned(self, now: datetime.datetime) -> None:
        """Leaves the announcement to the next run at once."""
        lost = self.state.model_copy(update={"claimed_at": now - 2 * _IN_FLIGHT})
        swap(self.path, _bytes(self.state), _bytes(lost))


def state_file(folder: epath.Path, suite: str) -> epath.Path:
    """Returns the file of a suite in a folder of run directories."""
    plain = re.sub(r"[^a-z0-9]+", "-", suite.lower()).strip("-")[:40]
    return folder / f"notified-{plain}-{hashlib.sha256(suite.encode()).hexdigest()[:8]}.json"


def claim(folder: epath.Path, news: News, now: datetime.datetime) -> Claim | None:
    """Undertakes to announce news, if they are some and nobody else has.

    A file that is missing or torn means that the state before is unknown, and is news.
    """
    path = state_file(folder, news.suite)
    for _ in range(_TRIES):
        held = read_if_there(path)
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
        if create_exclusively(path, data) if held is None else swap(path, held, data):
            known = None if before is None else before.state
            return Claim(path, after, known) if due else None
    raise OSError(f"{path}: others write it again and again")


def _read(data: bytes) -> LastState | None:
    with contextlib.suppress(pydantic.ValidationError):
        return LastState.model_validate_json(data)
    return None


def _bytes(state: LastState) -> bytes:
    return state.model_dump_json(indent=1).encode()
