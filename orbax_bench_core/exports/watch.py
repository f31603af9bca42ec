"""Dead man's switch: which suites have not reported, of which nobody else would hear."""

import dataclasses
import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from orbax_bench_core.baselines import runs_below
from orbax_bench_core.records import Heartbeat, RunDirectory, RunInfo

_ALIVE: Final = datetime.timedelta(seconds=5 * Heartbeat.PERIOD_S)
"""A measurement gives a sign each minute; a store may be slow, and clocks differ."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """What is expected of suites."""

    within: datetime.timedelta  # within this time each has begun a run that has reported
    own: Mapping[str, datetime.timedelta]  # another such time of some suites, which must be there
    # after this time without a sign, or without a repeat that ended, a run hangs
    stalled: datetime.timedelta
    # A suite that began no run for this long is no longer expected, unless it is in `own`
    forget: datetime.timedelta


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watched:
    """What is known of a suite."""

    suite: str  # its name
    said: str  # how it is, in a sentence
    well: bool  # whether that is as it should be
    directory: str  # its newest run directory; empty if there is none


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watch:
    """What was found."""

    suites: tuple[Watched, ...]  # the suites, by name
    forgotten: tuple[str, ...]  # names of those that are no longer expected
    unread: tuple[str, ...]  # what could not be read, a line each


def watch(places: Iterable[str], limits: Limits, now: datetime.datetime) -> Watch:
    """Says of each suite with a run below some folders whether it has reported in time.

    Args:
        places: Folders with run directories below them.
        limits: How long a suite may be silent, and after which time it is forgotten.
        now: The time, UTC.
    """
    unread: dict[str, str] = {}
    found: dict[str, list[tuple[RunDirectory, RunInfo]]] = {}
    for run in (run for each in places for run in runs_below(each, unread)):
        found.setdefault(run[1].suite_name, []).append(run)
    forgotten, watched = [], []
    for name in sorted({*found, *limits.own}):
        runs = sorted(found.get(name, ()), key=lambda run: run[1].created_at, reverse=True)
        if runs and name not in limits.own and now - runs[0][1].created_at > limits.forget:
            forgotten.append(name)
        else:
            watched.append(watch_suite(name, runs, limits, now))
    return Watch(suites=tuple(watched), forgotten=tuple(forgotten), unread=tuple(unread.values()))


def watch_suite(
    name: str,
    runs: Sequence[tuple[RunDirectory, RunInfo]],
    limits: Limits,
    now: datetime.datetime,
) -> Watched:
    """Says whether a suite has reported in time; `runs` are its own, the newest first."""
    within = limits.own.get(name, limits.within)
    if not runs:
        return Watched(
            suite=name, said="there is no run of it, and one was due", well=False, directory=""
        )
    (directory, newest), since = runs[0], now - within
    reported = next((info.created_at for _, info in runs if info.status != "running"), None)
    going = _going_on(newest, directory, limits, now) if newest.status == "running" else ""
    if going:
        well, said = False, going
    elif newest.status == "running" and newest.created_at >= since:
        beats = Heartbeat.all_of(directory)
        well, said = True, f"measuring since {_time(newest.created_at)}{_progress(beats)}"
    elif reported is not None and reported >= since:
        well, said = True, f"the run of {_time(reported)} has reported"
    else:
        last = "never" if reported is None else f"last with the run of {_time(reported)}"
        well, said = False, f"it has reported {last}, and should within {span(within)}"
    return Watched(suite=name, said=said, well=well, directory=str(directory.root))


def _going_on(
    info: RunInfo, directory: RunDirectory, limits: Limits, now: datetime.datetime
) -> str:
    """Returns the trouble of a run that has not ended; empty if none is known."""
    beats = Heartbeat.all_of(directory)
    sign = max([info.created_at, *(beat.at for beat in beats)])
    begun = f"the run of {_time(info.created_at)}"
    if now - sign > limits.stalled:
        return f"{begun} gives no sign since {_time(sign)} and has not reported{_progress(beats)}"
    alive = [beat for beat in beats if not beat.ended and now - beat.at <= _ALIVE]
    stuck = [beat for beat in alive if now - beat.last_at > limits.stalled]
    if stuck:
        last = max(beat.last_at for beat in stuck)
        return f"{begun} hangs: no repeat has ended since {_time(last)}{_progress(stuck)}"
    return ""


def _progress(beats: Sequence[Heartbeat]) -> str:
    return f" ({beats[0].words})" if beats else ""


def _time(at: datetime.datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def span(time: datetime.timedelta) -> str:
    """Returns a time as it is given: in days, hours or minutes."""
    minutes = time.total_seconds() / 60
    for unit, size in (("d", 24 * 60), ("h", 60)):
        if minutes >= size and minutes % size == 0:
            return f"{minutes / size:g}{unit}"
    return f"{minutes:g}m"
