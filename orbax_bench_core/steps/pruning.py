"""Retention: runs, captures and states of suites that are old and not in use, and their removal."""

import collections
import contextlib
import dataclasses
import datetime
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Self

from orbax_bench_core.baselines import Registry, in_use, remove_capture, runs_below
from orbax_bench_core.errors import UserError
from orbax_bench_core.exports.notifications import last_states
from orbax_bench_core.exports.site import has_site, renew_site
from orbax_bench_core.files import answered, checked_path, place, remove_tree
from orbax_bench_core.inventory import file_size, walk
from orbax_bench_core.leases import holder
from orbax_bench_core.lineage import compared_with
from orbax_bench_core.records import RunDirectory

_DESCRIPTION: Final = "run.json"
_MEBI: Final = 2**20
_ACCEPTED: Final = "give folders of run directories, or registries of baselines"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kept:
    """Something that is as old as what is removed, and stays."""

    what: Literal["run", "capture", "state"]  # what it is
    place: str  # where it lies
    suite: str  # name of its suite
    began_at: datetime.datetime  # when it was measured, UTC
    why: str = ""  # why it stays; empty for what goes
    size: int | None = None  # its bytes, where that is known without asking a store for each file

    def __str__(self) -> str:
        size = "" if self.size is None else f", {self.size / _MEBI:,.1f} MiB"
        return f"{self.what} {self.place} ({self.suite}, {self.began_at:%Y-%m-%d}{size})"

    @property
    def fields(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {**dataclasses.asdict(self), "began_at": self.began_at.isoformat()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pruning:
    """What is to go, and what stays although it is as old."""

    old: tuple[Kept, ...]  # what is to go, the oldest first
    in_use: tuple[Kept, ...]  # what stays for a reason that is said
    recent: int  # how many others stay: they are young, or among the newest of their suite
    unread: tuple[str, ...]  # what could not be read, a line each; all of it stays
    places: tuple[str, ...] = ()  # where it was looked for

    @classmethod
    def of(
        cls,
        places: Sequence[str],
        *,
        keep: datetime.timedelta,
        keep_last: int,
        spared: Sequence[str] = (),
    ) -> Self:
        """Returns what is older than a time, not among the newest of its suite, and not in use."""
        # In use are run directories that a process measures into; run directories and captures that
        # a run which stays was compared with, as its lineage says; and captures that are the
        # baseline of a point, or were before the last promotion.
        unread: list[str] = []
        listed = [(given, *_listed(given, unread)) for given in places]
        runs = list({_way(run.place): run for _, found, _ in listed for run in found}.values())
        states = [state for _, _, found in listed for state in found]
        registries = [registry for given in places if (registry := Registry(given)).exists()]
        captured = [_captures(registry) for registry in registries]
        for given, found, states_there in listed:
            if not (found or states_there or Registry(given).exists()):
                raise UserError(f"{given} holds neither runs nor captures: {_ACCEPTED}")
        since = datetime.datetime.now(datetime.UTC) - keep
        old_runs = _beyond(runs, since, keep_last)
        old_captures = [each for kept in captured for each in _beyond(kept, since, keep_last)]
        staying = [run for run in runs if run not in old_runs]
        compared = _compared(staying, unread)
        held = {reference: why for registry in registries for reference, why in in_use(registry)}
        reasons: list[Callable[[Kept], str]] = [
            lambda each: _spared(each.place, spared),
            lambda each: held.get(each.place, ""),
            lambda each: _busy(each.place) if each.what == "run" else "",
        ]
        judged = [
            dataclasses.replace(
                each, why=next(filter(None, (reason(each) for reason in reasons)), "")
            )
            for each in [*old_runs, *old_captures]
        ]
        # What stays may have been compared with something else that is as old, and so on.
        changed = True
        while changed:
            stays = [each for each in judged if each.why and each.what == "run"]
            compared |= _compared(stays, unread)
            after = [
                each if each.why else dataclasses.replace(each, why=_used(each.place, compared))
                for each in judged
            ]
            changed, judged = after != judged, after
        suites = {run.suite for run in [*staying, *(each for each in judged if each.why)]}
        judged += [each for each in states if each.began_at < since and each.suite not in suites]
        return cls(
            old=tuple(sorted((_sized(each) for each in judged if not each.why), key=_age)),
            in_use=tuple(sorted((each for each in judged if each.why), key=_age)),
            recent=len(runs) + sum(map(len, captured)) + len(states) - len(judged),
            unread=tuple(dict.fromkeys(unread)),
            places=tuple(places),
        )

    def remove(self) -> Iterator[tuple[Kept, str]]:
        """Removes what is to go, and yields each with what kept it; empty where it is gone."""
        # A run directory loses its description last: one that is removed in part is found again.
        for each in self.old:
            why = ""
            try:
                with answered(each.place):
                    why = _remove(each)
            except OSError as error:
                why = error.strerror or str(error)
            yield each, why
        for given in self.places:
            folder = place(checked_path(given))
            if has_site(folder):
                with contextlib.suppress(OSError, UserError):
                    renew_site(folder)


def _remove(each: Kept) -> str:
    """Removes one thing, unless it is in use by now, and returns why it is."""
    path = place(each.place)
    if each.what == "capture":
        return remove_capture(Registry(str(path.parent.parent)), f"{path.parent.name}/{path.name}")
    if each.what == "state":
        path.unlink(missing_ok=True)
        return ""
    if busy := _busy(each.place):
        return busy
    for inside in list(path.iterdir()):
        if inside.is_dir():
            remove_tree(inside, path)
        elif inside.name != _DESCRIPTION:
            inside.unlink(missing_ok=True)
    remove_tree(path, path.parent)
    return ""


def _age(each: Kept) -> tuple[datetime.datetime, str]:
    return each.began_at, each.place


def _listed(given: str, unread: list[str]) -> tuple[list[Kept], list[Kept]]:
    """Returns the run directories and the states of suites in a folder."""
    try:
        root = place(checked_path(given))
    except ValueError as error:
        raise UserError(str(error)) from None
    if not root.is_dir():
        raise UserError(f"{given} is no directory: {_ACCEPTED}")
    runs = [
        Kept(what="run", place=str(run.root), suite=info.suite_name, began_at=info.created_at)
        for run, info in runs_below(given, unread)
    ]
    states = [
        Kept(what="state", place=str(path), suite=suite, began_at=begun)
        for path, suite, begun in last_states(root)
    ]
    return runs, states


def _captures(registry: Registry) -> list[Kept]:
    return [
        Kept(
            what="capture",
            place=f"{registry.root}/{capture.reference}",
            suite=capture.suite,
            began_at=capture.measured_at,
        )
        for capture in registry.captures()
    ]


def _beyond(found: Sequence[Kept], since: datetime.datetime, most: int) -> list[Kept]:
    """Returns what is older than a time, and not among the newest of its suite."""
    seen: collections.Counter[str] = collections.Counter()
    old = []
    for each in sorted(found, key=_age, reverse=True):
        seen[each.suite] += 1
        if seen[each.suite] > most and each.began_at < since:
            old.append(each)
    return old


def _compared(runs: Iterable[Kept], unread: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for run in runs:
        try:
            paths = compared_with(RunDirectory(run.place))
        except (UserError, OSError) as failure:
            unread.append(str(failure))
            continue
        found |= {_way(path): run.place for path in paths if _way(path) != _way(run.place)}
    return found


def _used(path: str, compared: Mapping[str, str]) -> str:
    """Returns whose baseline something is; empty where nobody was compared with it."""
    own = _way(path)
    revision = own.rpartition("/")[0]
    for other, run in compared.items():
        if other in (own, f"{own}.json", revision) or other.startswith(f"{own}/"):
            return f"baseline of {run}, which stays"
    return ""


def _spared(path: str, spared: Sequence[str]) -> str:
    own = _way(path)
    named = (each for each in spared if own == _way(each) or own.startswith(f"{_way(each)}/"))
    return next((f"--except {each}" for each in named), "")


def _busy(folder: str) -> str:
    lease = holder(place(folder))
    return "" if lease is None else f"measured into by {lease}"


def _way(path: str) -> str:
    """Returns a path as others may have written it."""
    return path.rstrip("/") if "://" in path else os.path.realpath(path)


def _sized(each: Kept) -> Kept:
    if "://" in each.place:
        return each  # each file would be asked for
    with contextlib.suppress(OSError):
        if each.what == "state":
            return dataclasses.replace(each, size=file_size(each.place))
        return dataclasses.replace(each, size=sum(file_size(file) for _, file in walk(each.place)))
    return each
