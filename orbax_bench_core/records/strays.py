"""Strays: files among the records of a run that are not what their place says."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from orbax_bench_core.records.record import Record

MOST_NAMED: Final = 10
"""Strays that are named one by one."""

_AWAY: Final = "move it out of the run directory"
NO_PLACE: Final = f"no place of a record has this name: {_AWAY}"
NO_POINT: Final = f"no point of this run has this id: {_AWAY}"
TOO_LARGE: Final = f"larger than 64 MiB, which no record is: {_AWAY}"
TORN: Final = f"torn: not readable: {_AWAY}, or resume the run"

_REPEAT: Final = re.compile(r"(?P<kind>repeat|warmup)_(?P<index>0|[1-9]\d*)")
_HOST: Final = re.compile(r"host_(?P<host>0|[1-9]\d*)\.json")


class Place(NamedTuple):
    """Place of a record.

    Attributes:
        point_id: Id of the point.
        repeat: Index among its repeats, or among its warm-ups.
        warmup: Whether it is a warm-up.
        host: Index of the host.
    """

    point_id: str
    repeat: int
    warmup: bool
    host: int

    @property
    def path(self) -> str:
        """Path of the record below the run directory."""
        folder = repeat_folder(self.repeat, self.warmup)
        return f"records/{self.point_id}/{folder}/host_{self.host}.json"


class Stray(NamedTuple):
    """A file or folder that is left out.

    Attributes:
        path: Its path below the run directory.
        reason: Why.
    """

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def repeat_folder(repeat: int, warmup: bool) -> str:
    """Returns the name of the folder of a repeat, for its records and for its checkpoint data."""
    return f"{'warmup' if warmup else 'repeat'}_{repeat}"


def place_of(point_id: str, folder: str, file: str) -> Place | None:
    """Returns the place that names stand for, or None when no record has such names."""
    repeat, host = _repeat_of(folder), _host_of(file)
    return None if repeat is None or host is None else Place(point_id, *repeat, host)


@functools.lru_cache(maxsize=4096)
def _repeat_of(folder: str) -> tuple[int, bool] | None:
    """Returns the index of a repeat, and whether it is a warm-up; None for another name."""
    found = _REPEAT.fullmatch(folder)
    return None if found is None else (int(found["index"]), found["kind"] == "warmup")


@functools.lru_cache(maxsize=4096)
def _host_of(file: str) -> int | None:
    found = _HOST.fullmatch(file)
    return None if found is None else int(found["host"])


def misplaced(record: Record, place: Place, run_id: str) -> str:
    """Returns what a record says that its place does not; empty when they agree."""
    said = (record.point_id, record.repeat, record.warmup, record.host, record.run_id)
    if said == (*place, run_id) and record.host < record.num_hosts:
        return ""
    pairs = (
        ("point", record.point_id, place.point_id),
        ("repeat", _repeat(record.repeat, record.warmup), _repeat(place.repeat, place.warmup)),
        ("host", record.host, place.host),
        ("run", record.run_id, run_id),
    )
    found = [
        f"{name} {said} in a place of {name} {meant}"
        for name, said, meant in pairs
        if said != meant
    ]
    if not found and record.host >= record.num_hosts:
        found.append(f"host {record.host} of {record.num_hosts}")
    return "the record of " + " and ".join(found) if found else ""


def misplaced_stray(reason: str) -> str:
    """Returns what `misplaced` says, with what to do."""
    return f"{reason}: {_AWAY}, or resume the run, which keeps it aside if it is in the way"


def unread_stray(reason: str) -> str:
    """Returns what is said of a record of another schema version, with what to do."""
    return f"{reason}: upgrade to use it, or {_AWAY}"


def stray_lines(strays: Sequence[Stray], root: object) -> tuple[str, ...]:
    """Returns a line for each of the first ten strays of a run directory, and one for the rest."""
    lines = tuple(f"{root}/{stray}" for stray in strays[:MOST_NAMED])
    if len(strays) > MOST_NAMED:
        return (*lines, f"{root}: and {len(strays) - MOST_NAMED} more")
    return lines


def _repeat(index: int, warmup: bool) -> str:
    return f"{'warm-up ' if warmup else ''}{index}"
