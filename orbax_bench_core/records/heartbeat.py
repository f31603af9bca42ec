"""Heartbeat: how far a measurement is, written each minute while it goes on."""

import datetime
from typing import ClassVar, Final, Literal, Self

import pydantic

from orbax_bench_core.errors import UserError
from orbax_bench_core.files import ResultModel, matching, read_at_most, write_atomically
from orbax_bench_core.records.run_directory import RunDirectory

_FOLDER: Final = "heartbeats"
"""Folder of a run directory with a file for each step that measures, or one for the whole run."""


class Heartbeat(ResultModel):
    """How far a measurement was when it last gave a sign."""

    PERIOD_S: ClassVar[float] = 60.0
    """Seconds from one beat to the next."""

    version: Literal[1] = 1  # version of this layout
    part: str  # what is measured: `all`, or the batch of a step
    began_at: datetime.datetime  # when measuring began, UTC
    at: datetime.datetime  # when this was written, UTC
    last_at: datetime.datetime  # when a repeat last ended, UTC; at first when measuring began
    ended: bool = False  # whether measuring has ended, in whatever way
    points: int  # points or pairs that are measured
    points_done: int  # those of which nothing is left; of pairs none is told before the end
    # repeats of them, or operations at most where arms are compared; 0 where nobody knows, as in a
    # soak
    repeats: int
    repeats_done: int  # those that have a record
    # whether `repeats` is a bound, as of a comparison, which ends with its verdict
    most: bool = False
    # seconds that are left, by the pace so far, at most where `most`; None if nothing is known
    # yet
    left_s: float | None = None

    @classmethod
    def all_of(cls, run: RunDirectory) -> list[Self]:
        """Returns the last sign of each part of a run, the newest first, without torn files."""
        found = []
        for path in matching(run.root, f"{_FOLDER}/*.json"):
            try:
                found.append(cls.model_validate_json(read_at_most(path)))
            except (OSError, ImportError, UserError, pydantic.ValidationError):
                continue  # it is written again in a minute
        return sorted(found, key=lambda beat: beat.at, reverse=True)

    def write(self, run: RunDirectory) -> None:
        """Puts it in the place of the last one of its part."""
        path = run.root / _FOLDER / f"{self.part}.json"
        write_atomically(path, self.model_dump_json(indent=1).encode())

    @property
    def words(self) -> str:
        """How far it is, for people."""
        what = "operations" if self.most else "repeats"
        if not self.repeats:
            return f"{self.repeats_done} repeats"
        most = "at most " if self.most else ""
        said = [f"{self.repeats_done} of {most}{self.repeats} {what}"]
        if not self.most:
            said.insert(0, f"{self.points_done} of {self.points} points")
        if self.left_s is not None and not self.ended:
            said.append(f"{most or 'about '}{_span(self.left_s)} left")
        return ", ".join(said)


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
