"""Collection of a morning page: runs below some places, their verdicts, and their history.

What cannot be read is named on the page, and hides no other run.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from orbax_bench_core.analysis import acceptance
from orbax_bench_core.analysis.history import History, history
from orbax_bench_core.answers import VERDICTS, RunState, state_of
from orbax_bench_core.baselines import FoundRun, found_in, runs_below
from orbax_bench_core.errors import UserError
from orbax_bench_core.exports import watch
from orbax_bench_core.exports.site.cards import Cards
from orbax_bench_core.files import AnyPath
from orbax_bench_core.records import Record, RunDirectory, RunInfo

_FEWEST: Final = 3
"""Runs from which on the usual time between them is known."""
_PAST: Final = 10
"""Times between runs that say what is usual."""
_WITHIN: Final = datetime.timedelta(hours=26)
_STALLED: Final = datetime.timedelta(hours=1)
_FORGET: Final = datetime.timedelta(days=30)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SiteRun:
    """A run on the page."""

    folder: AnyPath  # its run directory
    info: RunInfo  # what its `run.json` says
    found: RunState  # what it found

    @property
    def state(self) -> str:
        """The word of its verdict, or how far it came."""
        return self.found.outcome.word

    @property
    def pages(self) -> tuple[str, ...]:
        """Names of the pages that it has."""
        return self.found.pages


@dataclasses.dataclass(frozen=True, kw_only=True)
class Site:
    """All that a morning page shows."""

    nights: tuple[SiteRun, ...]  # the runs, the newest first
    histories: dict[str, History]  # the history of each suite that has one, by its name
    # what an acceptance says of the verdict of the newest run, by suite; none where there is none
    standings: dict[str, acceptance.Standing]
    silent: dict[str, str]  # what is known of each suite that has not reported in time, by name
    unread: tuple[str, ...]  # what could not be read, a line each
    older: int  # number of runs that are older than those
    made_at: datetime.datetime  # when it was collected, UTC

    def suites(self) -> dict[str, list[SiteRun]]:
        """Returns the runs of each suite, the newest first; suites in the order of their names."""
        found: dict[str, list[SiteRun]] = {}
        for night in self.nights:
            found.setdefault(night.info.suite_name, []).append(night)
        return dict(sorted(found.items()))


def gather(places: Iterable[str], *, most: int, cards: Cards | None = None) -> Site:
    """Reads the runs below some places."""
    damaged: dict[str, str] = {}
    read = (cards or Cards(None)).measured
    runs = {
        info.run_id: (directory, info)
        for place in places
        for directory, info in runs_below(place, damaged)
    }
    unread = list(damaged.values())
    newest = sorted(runs.values(), key=lambda run: (run[1].created_at, run[1].run_id), reverse=True)
    kept, newer = [], collections.Counter[str]()
    for directory, info in newest:
        if newer[info.suite_name] < most:
            kept.append((directory, info))
        newer[info.suite_name] += 1
    nights = [
        SiteRun(folder=directory.root, info=info, found=state_of(directory, info))
        for directory, info in kept
    ]
    unread += (line for night in nights for line in night.found.unread)
    made_at = datetime.datetime.now(datetime.UTC)
    by_suite: dict[str, list[tuple[RunDirectory, RunInfo]]] = {}
    for directory, info in kept:
        by_suite.setdefault(info.suite_name, []).append((directory, info))
    of_suites: dict[str, list[FoundRun]] = {}
    for directory, info in reversed(kept):
        run = found_in(directory, info)
        guarded = dataclasses.replace(run, read=_guarded(run, unread))
        of_suites.setdefault(info.suite_name, []).append(guarded)
    return Site(
        nights=tuple(nights),
        histories={name: history(found, read=read) for name, found in of_suites.items()},
        standings={
            name: known
            for name, found in by_suite.items()
            if (known := _standing(found[0][0])) is not None
        },
        silent={
            name: said
            for name, found in by_suite.items()
            if (said := _silence(name, found, made_at))
        },
        unread=tuple(dict.fromkeys(unread)),
        older=len(runs) - len(kept),
        made_at=made_at,
    )


def _standing(run: RunDirectory) -> acceptance.Standing | None:
    try:
        found = VERDICTS.read(run)
        return None if found is None else acceptance.standing(found, str(run.root))
    except (UserError, OSError):
        return None  # it has no verdicts, or the page names it among what cannot be read


def _silence(
    name: str, runs: Sequence[tuple[RunDirectory, RunInfo]], now: datetime.datetime
) -> str:
    """Returns why a suite has not reported in time; empty if it has, or is not expected to.

    It is expected within twice the usual time between its runs, 26 hours at least, and until it was
    silent for 30 days. A run that hangs is told also of a suite whose usual time is not known.
    """
    begun = [info.created_at for _, info in runs]
    gaps = [later - earlier for later, earlier in itertools.pairwise(begun[: _PAST + 1])]
    within = _FORGET
    if len(runs) >= _FEWEST:
        hours = math.ceil(2 * statistics.median_low(gaps) / datetime.timedelta(hours=1))
        within = max(_WITHIN, datetime.timedelta(hours=hours))
    limits = watch.Limits(within=within, own={}, stalled=_STALLED, forget=max(_FORGET, 2 * within))
    if now - begun[0] > limits.forget:
        return ""
    found = watch.watch_suite(name, runs, limits, now)
    return "" if found.well else found.said


def _guarded(run: FoundRun, unread: list[str]) -> Callable[[], Iterator[Sequence[Record]]]:
    """Returns a reader of records that leaves out a run which cannot be read."""

    def read() -> Iterator[Sequence[Record]]:
        try:
            yield from list(run.read())
        except (UserError, OSError) as failure:
            unread.append(str(failure))

    return read
