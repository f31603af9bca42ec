"""Retention: runs, captures and states of suites that are old and not in use, and their removal."""

import collections
import contextlib
import dataclasses
import datetime
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, Literal, NamedTuple, Self

from orbax_bench_core.analysis.acceptance import acceptances_in
from orbax_bench_core.analysis.verdicts import read_verdicts
from orbax_bench_core.baselines import (
    Registry,
    files_of_capture,
    in_use,
    is_capture_id,
    remove_capture,
    runs_below,
)
from orbax_bench_core.contents import Contents
from orbax_bench_core.errors import UserError, command, listed
from orbax_bench_core.execute import SHARED_FOLDER
from orbax_bench_core.exports.last_states import last_states
from orbax_bench_core.exports.site import renew_site
from orbax_bench_core.exports.site_folder import has_site
from orbax_bench_core.files import (
    answered,
    checked_path,
    matching,
    place,
    refuse_links,
    without_detours,
)
from orbax_bench_core.inventory import file_size, walk
from orbax_bench_core.leases import holders, is_lease
from orbax_bench_core.lineage import baseline_digest, compared_with
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import RunDirectory, check_versions

_DESCRIPTION: Final = "run.json"
_OWN_LEASES: Final = ("leases", f"{SHARED_FOLDER}/leases")
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
    # what lies in its folder that orbax-bench has not written: it stays, and so does the folder
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        size = "" if self.size is None else f", {self.size / _MEBI:,.1f} MiB"
        said = f"{self.what} {self.place} ({self.suite}, {self.began_at:%Y-%m-%d}{size})"
        if not self.others:
            return said
        return f"{said}; its folder stays, with what others have put there: {listed(self.others)}"

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
    contents: dict[str, Contents] = dataclasses.field(default_factory=dict)  # of runs, by place

    @classmethod
    def of(
        cls,
        places: Sequence[str],
        *,
        keep: datetime.timedelta,
        keep_last: int,
        spared: Sequence[str] = (),
    ) -> Self:
        """Returns the runs older than a time, not the newest of their suite, and not in use."""
        # In use are run directories that a process measures into, or that hold another run, a lease
        # or a capture; run directories and captures that a run which stays was compared with; and
        # captures that are the baseline of a point, or were before the last promotion. What cannot
        # be read is in use, and so is all that it may refer to.
        damaged: dict[str, str] = {}
        found = [(given, *_listed(given, damaged)) for given in places]
        everywhere = [run for _, runs, _ in found for run in runs]
        # Of a run and a link to it, the run counts.
        everywhere.sort(key=lambda run: not _behind_link(run.place, places))
        runs = list({_way(run.place): run for run in everywhere}.values())
        states = [state for _, _, states in found for state in states]
        registries = [registry for given in places if (registry := Registry(given)).exists()]
        captured = [_captures(registry) for registry in registries]
        for given, runs_there, states_there in found:
            if not (runs_there or states_there or damaged or Registry(given).exists()):
                raise UserError(f"{given} holds neither runs nor captures: {_ACCEPTED}")
        since = datetime.datetime.now(datetime.UTC) - keep
        old_runs = _beyond(runs, since, keep_last)
        old_captures = [each for kept in captured for each in _beyond(kept, since, keep_last)]
        staying = [run.place for run in runs if run not in old_runs]
        held = {reference: why for registry in registries for reference, why in in_use(registry)}
        contents: dict[str, Contents] = {}
        reasons: list[Callable[[Kept], str]] = [
            lambda each: _spared(each.place, spared),
            lambda each: held.get(each.place, ""),
            lambda each: _behind_link(each.place, places),
            lambda each: _occupied(each.place, contents) if each.what == "run" else "",
        ]
        judged = [
            dataclasses.replace(
                each, why=next(filter(None, (reason(each) for reason in reasons)), "")
            )
            for each in [*old_runs, *old_captures]
        ]
        # What stays may have been compared with something else that is as old, and so on.
        unread = list(damaged.values())
        compared = _Compared(unread)
        stays = [*staying, *damaged]
        while stays:
            for run in stays:
                compared.add(run)
            judged = [
                each if each.why else dataclasses.replace(each, why=compared.why(each))
                for each in judged
            ]
            stays = [
                each.place
                for each in judged
                if each.why and each.what == "run" and not compared.has(each.place)
            ]
        suites = {run.suite for run in runs if run.place in staying}
        suites |= {each.suite for each in judged if each.why}
        if not damaged:  # of suites that nobody can name
            gone = (each for each in states if each.suite not in suites)
            judged += [each for each in gone if each.began_at < since]
        going = (_described(each, contents) for each in judged if not each.why)
        return cls(
            old=tuple(sorted(going, key=_age)),
            in_use=tuple(sorted((each for each in judged if each.why), key=_age)),
            recent=len(runs) + sum(map(len, captured)) + len(states) - len(judged),
            unread=tuple(dict.fromkeys(unread)),
            places=tuple(places),
            contents=contents,
        )

    def remove(self) -> Iterator[tuple[Kept, str]]:
        """Removes what is to go, and yields each with what kept it; empty if it is gone."""
        # A run directory loses its description last: one that is removed in part is found again.
        for each in self.old:
            why = ""
            try:
                with answered(each.place):
                    why = self._remove(each)
            except (OSError, UserError) as error:
                why = getattr(error, "strerror", None) or str(error)
            yield each, why
        for given in self.places:
            folder = place(checked_path(given))
            if has_site(folder):
                with contextlib.suppress(OSError, UserError):
                    renew_site(folder)

    def _remove(self, each: Kept) -> str:
        """Removes one thing, unless it is in use by now, and returns why it is."""
        path = place(each.place)
        if each.what == "capture":
            reference = f"{path.parent.name}/{path.name}"
            return remove_capture(Registry(str(path.parent.parent)), reference)
        if each.what == "state":
            path.unlink(missing_ok=True)
            return ""
        now: dict[str, Contents] = {}
        if why := _behind_link(each.place, self.places) or _occupied(each.place, now):
            return why
        if now[each.place].ours != self.contents[each.place].ours:
            return "it has changed since it was listed"
        now[each.place].remove()
        return ""


def _age(each: Kept) -> tuple[datetime.datetime, str]:
    return each.began_at, each.place


def _listed(given: str, unread: dict[str, str]) -> tuple[list[Kept], list[Kept]]:
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
        for path, suite, begun in (*last_states(root), *acceptances_in(root))
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
    """Returns the runs older than a time, and not among the newest of their suite."""
    seen: collections.Counter[str] = collections.Counter()
    old = []
    for each in sorted(found, key=_age, reverse=True):
        seen[each.suite] += 1
        if seen[each.suite] > most and each.began_at < since:
            old.append(each)
    return old


class _Noted(NamedTuple):
    """A baseline, as a run that stays has noted it."""

    place: str
    digest: str  # of its records then; `unknown` where nobody noted it
    run: str  # the run that was compared with it


class _Compared:
    """What runs that stay were compared with, as far as that can be read."""

    def __init__(self, unread: list[str]) -> None:
        """Notes in `unread` of which runs it cannot be read."""
        self._unread = unread
        self._noted: dict[str, list[_Noted]] = {}
        self._unknown = ""
        self._digest = functools.cache(_digest)

    def has(self, run: str) -> bool:
        """Returns whether it knows of a run, or that nothing can be known of it."""
        return run in self._noted

    def add(self, run: str) -> None:
        """Reads what a run was compared with: in `lineage.json`, or else in `verdicts.json`."""
        self._noted[run] = []
        try:
            found = compared_with(RunDirectory(run))
            if found is None:
                verdicts = read_verdicts(RunDirectory(run))
                apart = any(point.mode == "unpaired" for point in verdicts.points)
                found = {verdicts.baseline: UNKNOWN} if apart or not verdicts.points else {}
        except (UserError, OSError) as failure:
            self._unread.append(
                f"{run}: what it was compared with is unknown, so that nothing is removed that it "
                f"may have been: its lineage.json says nothing, and {failure}; "
                f"`{command('report', run)}` writes lineage.json again"
            )
            self._unknown = run
            return
        own = _way(run)
        self._noted[run] += [_Noted(*each, run) for each in found.items() if _way(each[0]) != own]

    def why(self, each: Kept) -> str:
        """Returns of which run something is the baseline; empty if of none."""
        if each.what == "state":
            return ""
        for one in itertools.chain(*self._noted.values()):
            if _lies_in(one.place, each):
                return f"baseline of {one.run}, which stays"
            if self._is_lost(one) and self._is_same(one, each):
                return f"baseline of {one.run}, which stays: it was {one.place}"
        return f"perhaps the baseline of {self._unknown}, which stays" if self._unknown else ""

    def _is_lost(self, one: _Noted) -> bool:
        """Returns whether something else, or nothing, is where a baseline was: it moved, say."""
        if one.digest == UNKNOWN:
            absolute = "://" in one.place or PurePath(one.place).is_absolute()
            return not (absolute and place(one.place).exists())
        return self._digest(one.place) != one.digest

    def _is_same(self, one: _Noted, each: Kept) -> bool:
        """Returns whether a lost baseline may be this: by its name, or by its records."""
        own = PurePath(_way(each.place))
        names = {own.name, f"{own.name}.json", own.parent.name if each.what == "capture" else ""}
        if PurePath(one.place).name in names and not place(one.place).exists():
            return True
        # What cannot be read may be it.
        return one.digest != UNKNOWN and self._digest(each.place) in (one.digest, "")


def _digest(path: str) -> str:
    """Returns the digest of the records of a run or capture; empty if they cannot be read."""
    try:
        return baseline_digest(path)
    except (UserError, OSError, ValueError):
        root = place(path)
        # A removal that was interrupted leaves no measured repeat, though perhaps a warm-up.
        removed = (root / _DESCRIPTION).exists() and not any(matching(root, "records/*/repeat_*/*"))
        return "no records" if removed else ""


def _lies_in(other: str, each: Kept) -> bool:
    """Returns whether a path names something, or what lies in it, or all of its revision."""
    own, named = _way(each.place), _way(other)
    revision = own.rpartition("/")[0] if each.what == "capture" else own
    return named in (own, f"{own}.json", revision) or named.startswith(f"{own}/")


def _spared(path: str, spared: Sequence[str]) -> str:
    own = _way(path)
    named = (each for each in spared if own == _way(each) or own.startswith(f"{_way(each)}/"))
    return next((f"--except {each}" for each in named), "")


def _behind_link(path: str, places: Sequence[str]) -> str:
    """Returns that something does not lie in the folders that were named, but behind a link."""
    for given in places:
        root = without_detours(checked_path(given))
        if path == root or path.startswith(f"{root.rstrip('/')}/"):
            try:
                refuse_links(f"{path}/{_DESCRIPTION}", root)
            except OSError as link:
                return f"{link.filename} is a link, behind which nothing is removed"
            return ""
    return ""


def _occupied(folder: str, contents: dict[str, Contents]) -> str:
    """Returns who measures into a run directory, or what else lies in it that keeps it.

    What lies in it is noted in `contents`.
    """
    root = place(folder)
    try:
        if busy := holders(root) or holders(root / SHARED_FOLDER):
            return f"measured into by {busy}"
        with answered(folder):
            found = contents[folder] = Contents.of(root)
            run = RunDirectory(folder)
            check_versions(run, run.read_info().expansion.points)
    except (OSError, UserError) as failure:
        return f"it cannot be read: {failure}"
    for path in (*found.others, *found.ours):
        inside, _, name = path.rpartition("/")
        if inside and name == _DESCRIPTION:
            return f"it holds another run, {inside}"
        if is_lease(path) and inside not in _OWN_LEASES:
            return f"it holds a lease, {path}"
        if is_capture_id(name.removesuffix(".json")):
            return f"it holds a capture, {path}"
    return ""


def _way(path: str) -> str:
    """Returns a path as others may have written it."""
    return path.rstrip("/") if "://" in path else os.path.realpath(path)


def _described(each: Kept, contents: Mapping[str, Contents]) -> Kept:
    """Returns the runs to remove with their size, and the files in their folders that stay."""
    if each.what == "run":
        found = contents[each.place]
        return dataclasses.replace(each, size=found.num_bytes, others=found.others)
    if each.what == "capture":
        path = place(each.place)
        _, others = files_of_capture(path)
        each = dataclasses.replace(each, others=tuple(others))
    if "://" in each.place:
        return each  # each file would be asked for
    with contextlib.suppress(OSError):
        if each.what == "state":
            return dataclasses.replace(each, size=file_size(each.place))
        return dataclasses.replace(each, size=sum(file_size(file) for _, file in walk(each.place)))
    return each
