"""A recording from its lines: processes, and the saves and loads of all hosts put together."""

from __future__ import annotations

import collections
import dataclasses
import math
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

import pydantic

from orbax_bench_core import pages
from orbax_bench_core.analysis.recording.lines import EventSums, Line
from orbax_bench_core.errors import UserError, command
from orbax_bench_core.files import matching, place, read_at_most
from orbax_bench_core.recorder import FORMAT, OWN_TIMES

if TYPE_CHECKING:
    from etils import epath

MOST_BYTES: Final = 4 * 2**30
"""Bytes of the file of one process."""
_QUIET_S: Final = 35.0
"""A process that runs writes a line each ten seconds; to an object store, each minute."""
_QUIET_REMOTE_S: Final = 200.0
_OWN_STEP: Final = ("begin", "end")
"""Lines whose step is that of the operation, not of the call in which it failed."""
_KEPT: Final = ("write", "openmetrics")
"""Places of errors of the recorder that cost nothing of what it hears."""
_WRITTEN: Final = "worker/io/raw/"
"""In the names of events that tell what the counters of the process have counted meanwhile."""
_BYTES: Final = (f"{_WRITTEN}gbytes", "worker/io/requested/gbytes")

Fate = Literal["committed", "failed", "cancelled", "going on", "cut off", "unknown"]
"""State of an operation; one that never ended is cut off if its process is gone."""
Kind = Literal["recording", "log", "goodput"]
"""What a job is known from: a recorder, Orbax's lines of a log, or ml-goodput-measurement."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one host says of a save or load. Seconds, unless named otherwise."""

    host: int
    t: float  # seconds since the epoch of its begin
    call_s: float | None  # the caller waited, by a clock around the call
    waited_s: float  # of that for the save before
    total_s: float | None  # from the begin of the call to the end of the background part
    fate: Fate
    rss: tuple[int, ...]  # bytes before, highest, after; empty if unknown
    device: tuple[int, ...]
    events: dict[str, EventSums]

    @property
    def blocked_s(self) -> float:
        """Seconds of the call without waiting for the save before."""
        return max(0.0, (self.call_s or 0.0) - self.waited_s)

    @property
    def behind_s(self) -> float:
        """Seconds that it went on in the background."""
        return max(0.0, (self.total_s or 0.0) - (self.call_s or 0.0))

    @property
    def own_s(self) -> tuple[float, float] | None:
        """Least and most seconds that this host wrote by itself; None if no event says it.

        It may or may not have written while it waited for the primary host.
        """
        name = next((name for name in OWN_TIMES if name in self.events), None)
        if name is None:
            return None
        most = self.events[name][1]
        held = sum(self.events[wait][1] for wait in OWN_TIMES[name] if wait in self.events)
        return max(0.0, most - held), most

    @property
    def num_bytes(self) -> int | None:
        """Bytes that this host wrote or read, before compression where it wrote several items.

        None if no event says it.
        """
        found = (
            round(sums[1] * 2**30)
            for end in _BYTES
            for name, sums in self.known_events.items()
            if name.endswith(end)
        )
        return next(found, None)

    @property
    def known_events(self) -> dict[str, EventSums]:
        """The events that are of this operation alone.

        Items of one save are written at the same time, so that the counters of the process hold
        what the others wrote, too.
        """
        return {
            name: sums for name, sums in self.events.items() if sums[0] == 1 or _WRITTEN not in name
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A save or a load on all hosts."""

    what: Literal["save", "load"]
    life: int
    step: int | None
    path: str
    background: bool
    parts: dict[int, Part]  # by host
    thread: str = ""  # that called it, if another than the main one
    overlaps: bool  # whether others were open, so that counters of the process hold both
    error: str = ""  # why it failed
    told_s: float | None = None  # seconds after which the job was told; None if never

    @property
    def first(self) -> Part:
        """Part of the first host."""
        return self.parts[min(self.parts)]

    @property
    def fate(self) -> Fate:
        """The worst of all hosts."""
        fates = {part.fate for part in self.parts.values()}
        worst: tuple[Fate, ...] = ("failed", "cut off", "going on", "cancelled", "unknown")
        return next((fate for fate in worst if fate in fates), "committed")

    @property
    def is_whole(self) -> bool:
        """Whether nothing is known against its end in a checkpoint, and its times are known."""
        return self.fate in ("committed", "unknown") and self.first.call_s is not None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One start of the job on all its hosts."""

    hosts: dict[int, Line]  # first line of each
    begin: float
    end: float  # time of its last line
    is_closed: bool  # whether it has ended by itself
    is_going: bool  # whether it still runs, as far as its lines tell
    steps: tuple[tuple[int, float, float], ...]  # of the first host: number, begin, seconds
    waits: tuple[tuple[float, float], ...]  # waits that the job asked for: begin, seconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A job, as it was recorded."""

    place: str
    lives: tuple[Life, ...]
    operations: tuple[Operation, ...]  # in order of time
    notes: tuple[str, ...]
    unread: tuple[str, ...] = ()  # what of it is missing or cannot be read
    kind: Kind = "recording"

    @property
    def hosts(self) -> int:
        """Hosts of the last life."""
        return max(line.hosts for line in self.lives[-1].hosts.values())

    @property
    def saves(self) -> list[Operation]:
        """The saves."""
        return [one for one in self.operations if one.what == "save"]

    @property
    def seconds(self) -> float:
        """Seconds that the recorded processes ran; 0 of a log without times."""
        return sum(life.end - life.begin for life in self.lives if life.begin)


def read_recording(folder: str, *, now: float | None = None) -> Recording:
    """Reads a recording, also of a job that still runs.

    Args:
        folder: The directory of the recording, local or `gs://`.
        now: Seconds since the epoch; by default those of this clock.

    Raises:
        UserError: There is none, or no line of it can be read.
    """
    by_process: dict[str, list[Line]] = collections.defaultdict(list)
    torn = 0
    for file in sorted(_files(folder), key=str):
        found = by_process[str(file).partition(".part_")[0]]
        for text in filter(None, read_at_most(file, MOST_BYTES).split(b"\n")):
            try:
                found.append(Line.model_validate_json(text))
            except pydantic.ValidationError:
                torn += 1
    begun = [found for found in by_process.values() if found and found[0].format == FORMAT]
    if not begun:
        version = max((found[0].format for found in by_process.values() if found), default=0)
        if version > FORMAT:
            raise UserError(
                f"{folder} is a recording of version {version}, which a later release of "
                f"orbax-bench reads; this one reads version {FORMAT}"
            )
        holds = "no recording that can be read" if by_process else "no recording"
        raise UserError(
            f"{folder!r} holds {holds}, which has files host_00000/*.jsonl: "
            f"`{command('record', '-o', folder)} -- python train.py` makes one"
        )
    unread = [pages.count(torn, "damaged line")] if torn else []
    if others := len(by_process) - len(begun):
        unread.append(f"{pages.count(others, 'file')} without a first line of version {FORMAT}")
    erred = [line for found in begun for line in found if line.line == "trouble"]
    # What could not be written was written later.
    if lost := [line for line in erred if line.where not in _KEPT]:
        what = f"{lost[-1].where}: {lost[-1].error}"
        unread.append(f"what {pages.count(len(lost), 'error')} of the recorder cost ({what})")
    notes = []
    lacking = sorted({name for found in begun for name in found[0].lacking})
    if lacking:
        notes.append(f"not heard, because this release does not have it: {', '.join(lacking)}")
    starts: list[dict[int, list[Line]]] = []
    for found in sorted(begun, key=lambda found: found[0].t):
        if not starts or found[0].host in starts[-1]:
            starts.append({})
        starts[-1][found[0].host] = found
    quiet_s = _QUIET_REMOTE_S if "://" in folder else _QUIET_S
    since = (time.time() if now is None else now) - quiet_s
    return recording_of(folder, starts, notes=notes, unread=unread, since=since)


def recording_of(
    place: str,
    starts: Sequence[dict[int, list[Line]]],
    *,
    since: float,
    notes: Iterable[str] = (),
    unread: Iterable[str] = (),
    kind: Kind = "recording",
) -> Recording:
    """Puts the lines of a job together.

    Args:
        place: Where they come from.
        starts: The lines of each start of the job, by process.
        since: Seconds since the epoch: the last start goes on if it has a line of a later time.
        notes: What is not known of it.
        unread: What of it is missing or cannot be read, other than files of hosts.
        kind: What wrote the lines.
    """
    lost = list(unread)
    lives: list[Life] = []
    operations: list[Operation] = []
    for number, start in enumerate(starts):
        lives.append(_life(start, since if number == len(starts) - 1 else math.inf))
        operations += _operations(start, number, is_going=lives[-1].is_going)
        hosts = max(found[0].hosts for found in start.values())
        if missing := hosts - len(start):
            lost.append(f"{missing} of the {hosts} hosts of life {number + 1}")
    operations.sort(key=lambda one: one.first.t)
    return Recording(
        place=place,
        lives=tuple(lives),
        operations=tuple(operations),
        notes=tuple(notes),
        unread=tuple(lost),
        kind=kind,
    )


def _files(folder: str) -> Iterable[epath.Path]:
    return matching(place(folder), "host_*/*.jsonl")


def _is_gone(life: Line) -> bool:
    """Whether a process of this machine is known to have ended."""
    if life.node != socket.gethostname() or not Path("/proc/self").exists():
        return False
    return not Path(f"/proc/{life.pid}").exists()


def _life(start: dict[int, list[Line]], since: float) -> Life:
    """Returns one start; it goes on if it has written since then."""
    first = start[min(start)]
    end = max(line.end for found in start.values() for line in found)
    closed = any(line.line == "close" for line in first)
    steps: list[tuple[int, float, float]] = []
    for line in first:
        at = line.t
        for number, took in enumerate(line.s, line.n):
            steps.append((number, at, took))
            at += took
    return Life(
        hosts={host: found[0] for host, found in sorted(start.items())},
        begin=min(found[0].t for found in start.values()),
        end=end,
        is_closed=closed,
        is_going=not closed and end > since and not _is_gone(first[0]),
        steps=tuple(steps),
        waits=tuple((line.t, line.seconds) for line in first if line.line == "wait"),
    )


def _operations(
    start: dict[int, list[Line]], number: int, *, is_going: bool
) -> Iterator[Operation]:
    """Yields the operations of a life: the nth on a path is the same on each host."""
    by_key: dict[tuple[str, str, int], dict[int, list[Line]]] = collections.defaultdict(dict)
    for host, found in sorted(start.items()):
        seen: collections.Counter[tuple[str, str]] = collections.Counter()
        by_id: dict[int | None, list[Line]] = {}
        for line in found:
            if line.line == "begin":
                by_id[line.id] = by_key[line.what, line.path, seen[line.what, line.path]][host] = []
                seen[line.what, line.path] += 1
            if line.id in by_id:
                by_id[line.id].append(line)
    for (what, path, _), by_host in by_key.items():
        said = [line for found in by_host.values() for line in found]
        failed = [line for line in said if line.line == "failed"]
        raised = [line.t for line in failed if line.where == "call"]
        told = [line.t for line in said if line.line == "surfaced"] + raised
        steps = [line.step for line in said if line.step is not None and line.line in _OWN_STEP]
        yield Operation(
            what="save" if what == "save" else "load",
            life=number,
            step=steps[0] if steps else _step_of(path),
            path=path,
            background=said[0].background and not raised,
            parts={host: _part(host, found, is_going) for host, found in by_host.items()},
            thread=said[0].thread,
            overlaps=any(line.overlaps for line in said),
            error=f"{failed[0].error}: {failed[0].message}" if failed and failed[0].error else "",
            told_s=told[0] - failed[0].t if told and failed else None,
        )


def _part(host: int, found: list[Line], is_going: bool) -> Part:
    begin = found[0]
    end = next((line for line in found if line.line == "end"), begin)
    ended = next((line for line in found if line.line == "ended"), None)
    has_failed = any(line.line in ("failed", "surfaced") for line in found)
    state = "failed" if has_failed else end.state if ended is None else ended.state
    total = None if ended is None else max(0.0, ended.t - begin.t)
    fates: dict[str, Fate] = {"committed": "committed", "failed": "failed"}
    fates |= {"cancelled": "cancelled", "unknown": "unknown"}
    fates |= {"open": "going on" if is_going else "cut off"}
    return Part(
        host=host,
        t=begin.t,
        call_s=end.call_s,
        waited_s=end.waited_s,
        total_s=total if end.total_s is None else end.total_s,
        fate=fates[state],
        rss=tuple(end.rss) if isinstance(end.rss, list) else (),
        device=tuple(end.device),
        events=end.events,
    )


def _step_of(path: str) -> int | None:
    """Returns the number at the end of a path, as of `/ckpt/400` and `/ckpt/step_400`."""
    digits = PurePosixPath(path).name.rpartition("_")[2]
    return int(digits) if digits.isdecimal() and len(digits) < 16 else None
