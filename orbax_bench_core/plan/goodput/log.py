"""Logs of a job in the format of `ml-goodput-measurement`: JSON objects, one a line.

An entry has `job_name` and one event: `job_start_time`, `job_end_time`, the begin and end of
`tpu_init`, `training_prep` and `data_loading`, `step_count` with `step_start_time`, or
`custom_badput_event_type` with its start or end. Times are seconds since the epoch.
"""

import dataclasses
import itertools
import json
import statistics
from collections.abc import Iterable, Mapping
from typing import Any, Final

from orbax_bench_core.errors import Problem, UserError, shown
from orbax_bench_core.files import read_at_most

_Life = list[tuple[int, float]]
"""The steps of a job from one start to its end: number and time of the begin."""

_STALL: Final = "checkpoint"
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

    @property
    def goodput(self) -> float | None:
        """Useful share of all time: each step once, at its median time."""
        if self.step_s is None or not self.wall_s:
            return None
        return min(1.0, self.steps * self.step_s / self.wall_s)


def read_log(path: str) -> JobLog:
    """Reads the log of a job."""
    try:
        text = read_at_most(path).decode()
    except (OSError, ImportError, ValueError) as error:
        raise UserError(Problem(f"cannot be read: {error}", file=path)) from None
    return log_of(_entries(text, path), file=path)


def _entries(text: str, path: str) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, dict):
            message = f"an entry is a JSON object, got {line[:200].strip()[:60]!r}"
            raise UserError(Problem(message, file=path, line=number))
        for key, value in entry.items():
            if message := _mistake(key, value):
                raise UserError(Problem(message, key=key, file=path, line=number))
        yield entry


def _mistake(key: str, value: object) -> str:
    """Returns what is wrong about the value of a key; empty where nothing is."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if key.endswith("_time") and not (is_number and abs(value) < _NEVER):  # type: ignore[arg-type]
        return f"a time is a number of seconds since the epoch, got {shown(value)}"
    if key == "step_count" and not (isinstance(value, int) and abs(value) < _NEVER):
        return f"the number of a step is an integer, got {shown(value)}"
    return ""


def log_of(entries: Iterable[Mapping[str, Any]], *, file: str = "") -> JobLog:
    """Says what entries say of a job."""
    life: _Life = []
    lives, stalls, times, name = [life], [], [], ""
    open_stall: float | None = None
    for entry in entries:
        name = str(entry.get("job_name", name))
        times += [float(value) for key, value in entry.items() if key.endswith("_time")]
        if "job_start_time" in entry and life:
            life = []
            lives.append(life)
        if "step_start_time" in entry:
            life.append((int(entry.get("step_count", -1)), float(entry["step_start_time"])))
        if _STALL in str(entry.get("custom_badput_event_type", "")):
            if "custom_badput_event_start_time" in entry:
                open_stall = float(entry["custom_badput_event_start_time"])
            elif open_stall is not None:
                ended = entry.get("custom_badput_event_end_time", open_stall)
                stalls.append((open_stall, float(ended)))
                open_stall = None
    if not life:
        lives = lives[:-1]
    if not lives:
        raise UserError(
            Problem("no entry has a step_start_time: it is not a log of training", file=file)
        )
    return _account(name, lives, stalls, max(times) - min(times))


def _account(
    name: str, lives: list[_Life], stalls: list[tuple[float, float]], wall: float
) -> JobLog:
    gaps = [
        (begin, end - begin) for life in lives for (_, begin), (_, end) in itertools.pairwise(life)
    ]
    step, notes = _median([seconds for _, seconds in gaps]), list[str]()
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
        blocking_s=_median([end - begin for begin, end in stalls]),
        interval_s=_median(intervals),
        failures=failures,
        mtbf_s=wall / failures if failures else None,
        recovery_s=_median([b[0][1] - a[-1][1] - (step or 0.0) for a, b in between]),
        lost_steps=_median([a[-1][0] + 1 - b[0][0] for a, b in between]),
        notes=tuple(notes),
    )


def _median(values: list[float] | list[int]) -> float | None:
    return float(statistics.median(values)) if values else None
