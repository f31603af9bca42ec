"""Logs of a job in the format of `ml-goodput-measurement`: JSON objects, in lines or in an array.

Cloud Logging wraps each in an entry of its own, as `jsonPayload`, and gives the newest first.

An entry has `job_name` and one event: `job_start_time`, `job_end_time`, the begin and end of
`tpu_init`, `training_prep` and `data_loading`, `step_count` with `step_start_time`, or
`custom_badput_event_type` with its start or end. Times are seconds since the epoch.
"""

import dataclasses
import gzip
import io
import itertools
import json
import statistics
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from orbax_bench_core.errors import Problem, UserError, listed, shown
from orbax_bench_core.files import MAX_BYTES, read_at_most

_Life = list[tuple[int, float]]
"""The steps of a job from one start to its end: number and time of the begin."""

_STALL: Final = "checkpoint"
_STARTS: Final = frozenset({"job_start_time", "job_run_start_time"})
_GZIP: Final = b"\x1f\x8b"
_WRAPPING: Final = frozenset({"jsonPayload", "textPayload", "protoPayload", "insertId", "logName"})
"""Keys of an entry of Cloud Logging."""
_FORM: Final = (
    "give a log of ml-goodput-measurement as JSON, one entry a line, or as gcloud logging read "
    "--format=json prints it"
)
_NEVER: Final = 1e15
"""Seconds, and steps, that no job has."""
_LONG: Final = 2.0
"""A step that takes so many times the median holds something else than the step."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobLog:
    """Facts of a job from its log; None stands for what the log does not say."""

    name: str  # the job
    wall_s: float  # seconds from its first entry to its last
    steps: int  # steps that were of use: the last one less the first, and one
    step_s: float | None  # median seconds of a step
    stalls: int  # times that training waited for a save
    blocking_s: float | None  # median seconds of that
    # median seconds from the begin of such a stall to the next, the stall included
    interval_s: float | None
    failures: int  # times that the job ended and began again
    mtbf_s: float | None  # seconds per failure
    # median seconds from the last step before a failure to the first one after
    recovery_s: float | None
    lost_steps: float | None  # median steps that were made twice for a failure
    notes: tuple[str, ...]  # how these were found
    lives: tuple[tuple[tuple[int, float], ...], ...]  # steps of each start: number and its begin
    stall_spans: tuple[tuple[float, float], ...]  # begin and end of each stall

    @property
    def goodput(self) -> float | None:
        """Useful share of all time: each step once, at its median time."""
        if self.step_s is None or not self.wall_s:
            return None
        return min(1.0, self.steps * self.step_s / self.wall_s)


def read_log(path: str) -> JobLog:
    """Reads the log of a job.

    Raises:
        UserError: It cannot be read, or is no log of one job.
    """
    return log_of(log_entries(log_text(path), path), file=path)


def log_text(path: str, errors: str = "strict") -> str:
    """Returns the text of a log, also of one that gzip has compressed.

    Args:
        path: The log.
        errors: What becomes of bytes that are no UTF-8, as for `bytes.decode`.

    Raises:
        UserError: It cannot be read.
    """
    try:
        data = read_at_most(path)
        if data.startswith(_GZIP):
            with gzip.open(io.BytesIO(data)) as unpacked:
                data = unpacked.read(MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                raise ValueError(f"it is larger than {MAX_BYTES:,} bytes unpacked")
        return data.decode("utf-8-sig", errors)
    except (OSError, EOFError, ImportError, ValueError, zlib.error) as error:
        raise UserError(Problem(f"cannot be read: {error}", file=path)) from None


def log_entries(text: str, path: str) -> Iterator[dict[str, Any]]:
    """Yields the entries of a log without what Cloud Logging wraps around each.

    Raises:
        UserError: One is no entry.
    """
    for place, number, found in _objects(text, path):
        entry = found
        if wrapped := isinstance(found, dict) and bool(_WRAPPING.intersection(found)):
            # Others are lines of text, or records of the service.
            entry = found.get("jsonPayload", {})
        if not isinstance(entry, dict):
            given = f"{shown(entry)} as jsonPayload" if wrapped else shown(entry)
            message = f"{place}an entry is a JSON object, got {given}; {_FORM}"
            raise UserError(Problem(message, file=path, line=number))
        for key, value in entry.items():
            if message := _mistake(key, value):
                raise UserError(Problem(f"{place}{message}", key=key, file=path, line=number))
        yield entry


def _objects(text: str, path: str) -> Iterator[tuple[str, int | None, Any]]:
    """Yields each value of JSON with its place: the line, or the number in an array."""
    if text.lstrip().startswith("["):
        try:
            every = json.loads(text)
        except (ValueError, RecursionError) as error:
            message = f"an array of JSON has its end missing, or a mistake: {error}"
            raise UserError(Problem(message, file=path)) from None
        for number, entry in enumerate(every, start=1):
            yield f"entry {number}: ", None, entry
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            message = f"an entry is a JSON object, got {line[:200].strip()[:60]!r}; {_FORM}"
            raise UserError(Problem(message, file=path, line=number)) from None
        yield "", number, entry


def _mistake(key: str, value: object) -> str:
    """Returns the mistake in the value of a key; empty if there is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if key.endswith("_time") and not (is_number and abs(value) < _NEVER):  # type: ignore[arg-type]
        return f"a time is a number of seconds since the epoch, got {shown(value)}"
    # Cloud Logging keeps all numbers as floating-point ones.
    is_whole = is_number and abs(value) < _NEVER and value == int(value)  # type: ignore[arg-type,call-overload]
    if key == "step_count" and not is_whole:
        return f"the number of a step is an integer, got {shown(value)}"
    return ""


def log_of(entries: Iterable[Mapping[str, Any]], *, file: str = "") -> JobLog:
    """Says what the entries of one job say of it, in whatever order they come.

    Raises:
        UserError: They are of several jobs, or of no training.
    """
    life: _Life = []
    lives, stalls = [life], []
    open_stall: float | None = None
    every = list(entries)
    timed = _in_order(every)
    names = sorted({str(entry["job_name"]) for _, entry in timed if "job_name" in entry})
    if len(names) > 1:
        raise UserError(
            Problem(
                f"it has entries of {len(names)} jobs: {listed(names)}; keep those of one, such as "
                f"by the filter jsonPayload.job_name={json.dumps(names[0])} of gcloud logging read",
                file=file,
            )
        )
    for _, entry in timed:
        if life and not _STARTS.isdisjoint(entry):
            life = []
            lives.append(life)
        if "step_start_time" in entry:
            life.append((int(entry.get("step_count", -1)), float(entry["step_start_time"])))
        if _STALL in str(entry.get("custom_badput_event_type", "")):
            if "custom_badput_event_start_time" in entry:
                open_stall = float(entry["custom_badput_event_start_time"])
            if open_stall is not None and "custom_badput_event_end_time" in entry:
                stalls.append((open_stall, float(entry["custom_badput_event_end_time"])))
                open_stall = None
    lives = [life for life in lives if life]
    if not lives:
        raise UserError(
            Problem("no entry has a step_start_time: it is not a log of training", file=file)
        )
    times = [value for _, entry in timed for value in _times(entry)]
    name = names[0] if names else ""
    notes = []
    if rest := sum(not _times(entry) for entry in every):
        notes.append(f"entries without a time of an event are left out: {rest} of {len(every)}")
    if repeated := len(every) - rest - len(timed):
        notes.append(f"entries that are in the log before are counted once: {repeated}")
    return _account(name, lives, stalls, max(times) - min(times), notes)


def _in_order(entries: Iterable[Mapping[str, Any]]) -> list[tuple[float, Mapping[str, Any]]]:
    """Returns the entries with a time, each once, by that time.

    Cloud Logging returns the newest entry first, and one that was exported twice comes twice.
    """
    timed = [(min(times), entry) for entry in entries if (times := _times(entry))]
    if timed and timed[0][0] > timed[-1][0]:
        timed.reverse()  # so that entries of one moment stay as they were written
    timed.sort(key=lambda pair: pair[0])
    once = {json.dumps(entry, sort_keys=True): (time, entry) for time, entry in reversed(timed)}
    return list(reversed(once.values()))


def _times(entry: Mapping[str, Any]) -> list[float]:
    return [float(value) for key, value in entry.items() if key.endswith("_time")]


def _account(
    name: str, lives: list[_Life], stalls: list[tuple[float, float]], wall: float, notes: list[str]
) -> JobLog:
    gaps = [
        (begin, end - begin) for life in lives for (_, begin), (_, end) in itertools.pairwise(life)
    ]
    step = _median([seconds for _, seconds in gaps])
    if not stalls and step is not None:
        stalls = [(begin + step, begin + gap) for begin, gap in gaps if gap > _LONG * step]
        notes.append(
            f"no event of a type with {_STALL!r} is in the log: steps of more than "
            f"{_LONG:g} times the median are taken for stalls by saves"
        )
    failures = len(lives) - 1
    steps = [number for life in lives for number, _ in life]
    between = list(itertools.pairwise(lives))
    intervals: list[float] = []  # from stall to stall of the same life
    for life in lives:
        own = [start for start, _ in stalls if life[0][1] <= start <= life[-1][1]]
        intervals += [after - before for before, after in itertools.pairwise(own)]
    return JobLog(
        name=name,
        wall_s=wall,
        steps=max(steps) - min(steps) + 1,
        step_s=step,
        stalls=len(stalls),
        blocking_s=_median([max(0.0, end - begin) for begin, end in stalls]),
        interval_s=_median(intervals),
        failures=failures,
        mtbf_s=wall / failures if failures else None,
        recovery_s=_median([max(0.0, b[0][1] - a[-1][1] - (step or 0.0)) for a, b in between]),
        lost_steps=_median([a[-1][0] + 1 - b[0][0] for a, b in between]),
        notes=tuple(notes),
        lives=tuple(map(tuple, lives)),
        stall_spans=tuple(stalls),
    )


def _median(values: list[float] | list[int]) -> float | None:
    return float(statistics.median(values)) if values else None
