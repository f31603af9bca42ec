"""A recording from its lines: processes, and the saves and loads of all hosts put together."""

from __future__ import annotations

import collections
import dataclasses
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

import pydantic

from orbax_bench_core.analysis.recording import lines
from orbax_bench_core.errors import UserError, command
from orbax_bench_core.files import matching, place, read_at_most

if TYPE_CHECKING:
    from etils import epath

MOST_BYTES: Final = 4 * 2**30
"""Bytes of the file of one process."""
_QUIET_S: Final = 35.0
"""A process that runs writes a line each ten seconds; to an object store, each minute."""
_QUIET_REMOTE_S: Final = 200.0
_OWN: Final = (
    "/jax/checkpoint/write/async/commit_duration_sec",
    "/jax/orbax/write/background_ts_duration_secs",
    "/jax/orbax/write/worker/total_duration_secs",
    "/jax/orbax/read/worker/total_duration_secs",
)
"""Events that time what this host writes or reads itself, without waiting for others."""
_BYTES: Final = ("worker/io/raw/gbytes", "worker/io/requested/gbytes")

Fate = Literal["committed", "failed", "cancelled", "going on", "cut off"]
"""State of an operation; one that never ended is cut off if its process is gone."""


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
    events: dict[str, lines.EventSums]

    @property
    def blocked_s(self) -> float:
        """Seconds of the call without waiting for the save before."""
        return max(0.0, (self.call_s or 0.0) - self.waited_s)

    @property
    def own_s(self) -> float | None:
        """Seconds that this host wrote or read by itself; None if no event says it."""
        return next((self.events[name][1] for name in _OWN if name in self.events), None)

    @property
    def num_bytes(self) -> int | None:
        """Bytes that this host wrote or read; None if no event says it."""
        found = (
            int(sums[1] * 2**30)
            for end in _BYTES
            for name, sums in self.events.items()
            if name.endswith(end)
        )
        return next(found, None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A save or a load on all hosts."""

    what: Literal["save", "load"]
    life: int
    step: int | None
    path: str
    background: bool
    parts: dict[int, Part]  # by host
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
        worst: tuple[Fate, ...] = ("failed", "cut off", "going on", "cancelled")
        return next((fate for fate in worst if fate in fates), "committed")

    @property
    def is_whole(self) -> bool:
        """Whether it has ended in a checkpoint, and its times are known."""
        return self.fate == "committed" and self.first.call_s is not None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Steps of the first host: numbers, begins since the epoch, and seconds."""

    numbers: tuple[int, ...] = ()
    begins: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One start of the job on all its hosts."""

    hosts: dict[int, lines.LifeLine]
    begin: float
    end: float  # time of its last line
    is_closed: bool  # whether it has ended by itself
    is_going: bool  # whether it still runs, as far as its lines tell
    steps: Steps
    waits: tuple[tuple[float, float], ...]  # waits that the job asked for: begin, seconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A job, as it was recorded."""

    place: str
    lives: tuple[Life, ...]
    operations: tuple[Operation, ...]  # in order of time
    load_failures: int  # loads that raised before they began
    notes: tuple[str, ...]

    @property
    def hosts(self) -> int:
        """Hosts of the last life."""
        return max(life.hosts for life in self.lives[-1].hosts.values())

    @property
    def saves(self) -> list[Operation]:
        """The saves."""
        return [one for one in self.operations if one.what == "save"]

    @property
    def seconds(self) -> float:
        """Seconds that the recorded processes ran."""
        return sum(life.end - life.begin for life in self.lives)


@dataclasses.dataclass(slots=True)
class _Process:
    """The lines of one process."""

    life: lines.LifeLine
    found: list[lines.Line]
    last: float = 0.0
    torn: int = 0


def is_recording(folder: str) -> bool:
    """Whether a folder holds a recording."""
    return next(iter(_files(folder)), None) is not None


def read_recording(folder: str, *, now: float | None = None) -> Recording:
    """Reads a recording, also of a job that still runs.

    Args:
        folder: The directory of the recording, local or `gs://`.
        now: Seconds since the epoch; by default those of this clock.

    Raises:
        UserError: There is none, or no line of it can be read.
    """
    by_process: dict[str, list[epath.Path]] = collections.defaultdict(list)
    for file in sorted(_files(folder), key=str):
        by_process[str(file).partition(".part_")[0]].append(file)
    processes, notes = [], []
    for name, files in by_process.items():
        process = _process(files)
        if process is None:
            notes.append(f"{PurePosixPath(name).name}: no life of version 1, left out")
        else:
            processes.append(process)
    if not processes:
        raise UserError(
            f"{folder} holds no recording, which has files host_00000/*.jsonl: "
            f"`{command('record', '-o', folder)} -- python train.py` makes one"
        )
    if torn := sum(process.torn for process in processes):
        notes.append(f"lines that cannot be read are left out: {torn}")
    lacking = sorted({name for process in processes for name in process.life.lacking})
    if lacking:
        notes.append(f"this release of Orbax has no {', '.join(lacking)}: not heard")
    return _recording(folder, processes, notes, time.time() if now is None else now)


def _files(folder: str) -> Iterable[epath.Path]:
    return matching(place(folder), "host_*/*.jsonl")


def _process(files: Sequence[epath.Path]) -> _Process | None:
    found: list[lines.Line] = []
    torn, last = 0, 0.0
    for file in files:
        *whole, rest = read_at_most(file, MOST_BYTES).split(b"\n")
        torn += bool(rest)
        for text in filter(None, whole):
            try:
                line = lines.PARSER.validate_json(text)
            except pydantic.ValidationError:
                torn += 1
                continue
            found.append(line)
            # Steps are written with the time of the first of them.
            ends = line.t + sum(line.s) if isinstance(line, lines.StepsLine) else line.t
            if isinstance(line, lines.EndLine):
                ends += line.total_s or line.call_s or 0.0
            last = max(last, ends)
    life = next((line for line in found if isinstance(line, lines.LifeLine)), None)
    return None if life is None else _Process(life, found, last, torn)


def _recording(folder: str, processes: list[_Process], notes: list[str], now: float) -> Recording:
    lives: list[dict[int, _Process]] = []
    for process in sorted(processes, key=lambda one: one.life.t):
        if not lives or process.life.host in lives[-1]:
            lives.append({})
        lives[-1][process.life.host] = process
    operations: list[Operation] = []
    failures, made = 0, []
    quiet_s = _QUIET_REMOTE_S if "://" in folder else _QUIET_S
    for number, life in enumerate(lives):
        made.append(_life(life, now, quiet_s, is_last=number == len(lives) - 1))
        operations += _operations(life, number, is_going=made[-1].is_going)
        failures += sum(
            isinstance(line, lines.FailedLine) and line.id is None and line.what == "load"
            for line in life[min(life)].found
        )
        lacking = next(iter(life.values())).life.hosts - len(life)
        if lacking > 0:
            notes.append(f"life {number + 1}: the files of {lacking} hosts are missing")
    operations.sort(key=lambda one: one.first.t)
    return Recording(
        place=folder,
        lives=tuple(made),
        operations=tuple(operations),
        load_failures=failures,
        notes=tuple(notes),
    )


def _is_gone(life: lines.LifeLine) -> bool:
    """Whether a process of this machine is known to have ended."""
    if life.node != socket.gethostname() or not Path("/proc/self").exists():
        return False
    return not Path(f"/proc/{life.pid}").exists()


def _life(life: dict[int, _Process], now: float, quiet_s: float, *, is_last: bool) -> Life:
    first = life[min(life)]
    end = max(process.last for process in life.values())
    closed = any(line.line == "close" for line in first.found)
    numbers: list[int] = []
    begins: list[float] = []
    seconds: list[float] = []
    for line in first.found:
        if isinstance(line, lines.StepsLine):
            at = line.t
            for place_, took in enumerate(line.s):
                numbers.append(line.n + place_)
                begins.append(at)
                seconds.append(took)
                at += took
    return Life(
        hosts={host: process.life for host, process in sorted(life.items())},
        begin=min(process.life.t for process in life.values()),
        end=end,
        is_closed=closed,
        is_going=is_last and not closed and now - end < quiet_s and not _is_gone(first.life),
        steps=Steps(numbers=tuple(numbers), begins=tuple(begins), seconds=tuple(seconds)),
        waits=tuple((line.t, line.s) for line in first.found if isinstance(line, lines.WaitLine)),
    )


def _operations(life: dict[int, _Process], number: int, *, is_going: bool) -> Iterator[Operation]:
    """Yields the operations of a life: the nth on a path is the same on each host."""
    by_key: dict[tuple[str, str, int], dict[int, _Known]] = collections.defaultdict(dict)
    for host, process in life.items():
        seen: collections.Counter[tuple[str, str]] = collections.Counter()
        for known in _known(process).values():
            key = known.begin.what, known.begin.path
            by_key[(*key, seen[key])][host] = known
            seen[key] += 1
    for (what, path, _), by_host in by_key.items():
        parts = {host: _part(host, known, is_going) for host, known in sorted(by_host.items())}
        first = by_host[min(by_host)]
        failures = [known.failed for known in by_host.values() if known.failed is not None]
        told = [known.told for known in by_host.values() if known.told is not None]
        steps = [known.step for known in by_host.values() if known.step is not None]
        yield Operation(
            what="save" if what == "save" else "load",
            life=number,
            step=steps[0] if steps else _step_of(path),
            path=path,
            background=first.begin.background,
            parts=parts,
            overlaps=any(known.begin.overlaps for known in by_host.values()),
            error=f"{failures[0].error}: {failures[0].message}" if failures else "",
            told_s=told[0] - failures[0].t if told and failures else None,
        )


@dataclasses.dataclass(slots=True)
class _Known:
    """Lines of one operation on one host."""

    begin: lines.BeginLine
    end: lines.EndLine | None = None
    state: lines.State = "open"
    ended: float | None = None
    failed: lines.FailedLine | None = None
    told: float | None = None

    @property
    def step(self) -> int | None:
        return self.begin.step if self.end is None else self.end.step


def _known(process: _Process) -> dict[int, _Known]:
    found: dict[int, _Known] = {}
    for line in process.found:
        if isinstance(line, lines.BeginLine):
            found[line.id] = _Known(line)
            continue
        known = found.get(getattr(line, "id", None) or 0)
        if known is None:
            continue
        if isinstance(line, lines.EndLine):
            known.end, known.state = line, line.state
        elif isinstance(line, lines.EndedLine):
            known.state, known.ended = line.state, line.t
        elif isinstance(line, lines.FailedLine):
            known.state = "failed"
            known.failed = known.failed or line
            if line.line == "surfaced" or line.where == "call":
                known.told = line.t
    return found


def _part(host: int, known: _Known, is_going: bool) -> Part:
    begin, end = known.begin, known.end
    fates: dict[str, Fate] = {
        "committed": "committed",
        "failed": "failed",
        "cancelled": "cancelled",
        "open": "going on" if is_going else "cut off",
    }
    total = None if known.ended is None else max(0.0, known.ended - begin.t)
    return Part(
        host=host,
        t=begin.t,
        call_s=None if end is None else end.call_s,
        waited_s=0.0 if end is None else end.waited_s,
        total_s=total if end is None or end.total_s is None else end.total_s,
        fate=fates[known.state],
        rss=() if end is None else tuple(end.rss),
        device=() if end is None else tuple(end.device),
        events={} if end is None else end.events,
    )


def _step_of(path: str) -> int | None:
    """Returns the number at the end of a path, as of `/ckpt/400` and `/ckpt/step_400`."""
    digits = PurePosixPath(path).name.rpartition("_")[2]
    return int(digits) if digits.isdecimal() and len(digits) < 16 else None
