"""Document of a morning page: which suites need a person, and why."""

import dataclasses
import datetime
import os
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from orbax_bench_core import pages
from orbax_bench_core.analysis.acceptance import Standing
from orbax_bench_core.analysis.history import latest, new_in, trend, trends_of, what_ran_in, worst
from orbax_bench_core.errors import command
from orbax_bench_core.exit_codes import WORDS
from orbax_bench_core.exports.site.gathering import Site, SiteRun
from orbax_bench_core.files import AnyPath

_SILENT: Final = "NO REPORT"
_ACCEPTED: Final = "ACCEPTED"
_TREND: Final = (
    "A trend has a dot for the last run. Up is slower: each run against its baseline, or seconds "
    "against their median where there is none. The band is the margin, within which no verdict "
    "calls a run slower; a dashed line is another release, a coloured one a change. Every run "
    "writes this page again."
)
_ORDER: Final = tuple(WORDS)
_SIGNS: Final[dict[pages.Role, str]] = {**pages.SIGNS, "plain": "–"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Suite:
    """A suite on the page: its runs, the newest first, and the state that counts now."""

    name: str
    nights: Sequence[SiteRun]
    silence: str  # why it has not reported in time; empty if it has
    known: Standing | None  # what was accepted; None if nothing was

    @property
    def state(self) -> str:
        if self.silence:
            return _SILENT
        return _ACCEPTED if self.known is not None and self.known.holds else self.nights[0].state

    @property
    def role(self) -> pages.Role:
        return WORDS[self.state].role

    @property
    def same(self) -> Sequence[SiteRun]:
        """The newest runs whose state is that of the last one."""
        states = [night.state for night in self.nights]
        last = next((at for at, state in enumerate(states) if state != states[0]), len(states))
        return self.nights[:last]

    @property
    def said(self) -> str:
        """What was found, in a sentence; empty if that is nothing."""
        known = self.known.said if self.known is not None else ""
        answer = self.silence or self.nights[0].found.answer
        return "; ".join(filter(None, (answer.removesuffix("."), known)))


def site_document(site: Site, folder: AnyPath) -> pages.Document:
    """Returns the morning page, whose links lead from `folder` to the runs."""
    suites = sorted(
        (
            _Suite(
                name=name,
                nights=nights,
                silence=site.silent.get(name, ""),
                known=site.standings.get(name),
            )
            for name, nights in site.suites().items()
        ),
        key=lambda suite: _ORDER.index(suite.state),
    )
    older = f", {pages.count(site.older, 'older run')} left out" if site.older else ""
    unread = f"; {len(site.unread)} could not be read" if site.unread else ""
    return pages.Document(
        about=(
            f"Checkpoint benchmarks, {site.made_at:%A %Y-%m-%d %H:%M} UTC, "
            f"{pages.count(len(site.nights), 'run')}{older}{unread}"
        ),
        headline=_headline(suites),
        summary=(_overview(suites, site, folder),),
        following=_following(suites),
        details=(
            pages.Text(_TREND, "dim"),
            pages.Section("Suites", tuple(_details(suite, site) for suite in suites)),
            pages.Section(
                "Runs", (pages.Details("All runs, by suite and state", (_runs(site, folder),)),)
            ),
            pages.Section("Could not be read", (pages.Text(items=site.unread),)),
        ),
    )


def _headline(suites: Sequence[_Suite]) -> pages.Callout:
    if not suites:
        return pages.Callout("", "No run yet")
    bad = sum(suite.role == "bad" for suite in suites)
    needs = "needs" if bad < 2 else "need"
    return pages.Callout("", f"{bad or 'None'} of {pages.count(len(suites), 'suite')} {needs} you")


def _overview(suites: Sequence[_Suite], site: Site, folder: AnyPath) -> pages.Table:
    columns = (
        *pages.columns("suite", "state", "latest", "since", "last run"),
        pages.Column("trend", "picture"),
    )
    rows = []
    for suite in suites:
        newest, series = suite.nights[0], worst(site.histories[suite.name])
        drawn = None
        if series is not None:
            drawn = trend(series, newest.info.gate.rule(series.operation).margin)
        since = suite.same[-1].info.created_at
        rows.append(
            pages.Row(
                (
                    pages.Cell(suite.name, href=_page(newest, folder)),
                    pages.Cell(_word(suite.state), suite.role),
                    "–" if series is None else latest(series),
                    f"{since:%Y-%m-%d}, {pages.count(len(suite.same), 'run')}",
                    pages.Cell(
                        _ago(site.made_at - newest.info.created_at),
                        "bad" if suite.silence else "plain",
                    ),
                    "" if drawn is None else pages.Cell(drawn.said, chart=drawn),
                )
            )
        )
    return pages.Table(columns, tuple(rows))


def _word(state: str) -> str:
    return f"{_SIGNS[WORDS[state].role]} {state}"


def _ago(age: datetime.timedelta) -> str:
    """Returns an age for people: minutes, hours up to two days, then days."""
    minutes = age.total_seconds() / 60
    if minutes < 90:
        return f"{minutes:.0f} min ago"
    return f"{minutes / 60:.0f} h ago" if minutes < 48 * 60 else f"{age.days} days ago"


def _following(suites: Sequence[_Suite]) -> pages.Code | None:
    """Returns the command for the suite that needs a person most."""
    if not suites or suites[0].role != "bad":
        return None
    first, newest = suites[0], suites[0].nights[0]
    about = f"{first.state} of {pages.code(first.name)}"
    if first.silence:
        return pages.Code(command("watch", newest.folder.parent), f"{about}: {first.silence}.")
    shown = "compare" if first.state == "REGRESSION" else "report"
    return pages.Code(command(shown, newest.folder), f"{about}, in full.")


def _details(suite: _Suite, site: Site) -> pages.Details:
    """Returns the past of a suite, folded below the finding of its last run."""
    newest = suite.nights[0]
    same = suite.same
    before = suite.nights[len(same) : len(same) + 1]
    first, past = same[-1].info, site.histories[suite.name]
    since = f"{newest.state} since {first.created_at:%Y-%m-%d %H:%M} UTC"
    was = "".join(f", {night.state} before" for night in before)
    new = ", ".join(new_in(past, first.run_id))
    said = f": {suite.said}" if suite.said else ""
    known = ""
    if suite.state == "REGRESSION":
        accepting = command("accept", newest.folder, suite.name, "--reason", "...")
        known = f"If it is known and stays: {pages.code(accepting)}"
    return pages.Details(
        f"{pages.code(suite.name)}: {_word(suite.state)}{said}",
        (
            pages.Text(f"{since}, {pages.count(len(same), 'run')}{was}."),
            pages.Text(f"New in the first of them: {new}." if new else ""),
            pages.Text(known),
            *trends_of(past, lambda name: newest.info.gate.rule(name).margin),
        ),
    )


def _runs(site: Site, folder: AnyPath) -> pages.Table:
    ran: dict[str, str] = {}
    for found in site.histories.values():
        ran |= what_ran_in(found)
    rows = (
        pages.Row(
            (
                pages.Cell(str(night.folder.name), href=_address(night, folder)),
                night.info.suite_name,
                f"{night.info.created_at:%Y-%m-%d %H:%M}",
                pages.Cell(_word(night.state), WORDS[night.state].role, _page(night, folder, "")),
                ran.get(night.info.run_id, "–"),
            )
        )
        for night in site.nights
    )
    columns = pages.columns("run", "suite", "begun", "state", "what ran")
    return pages.Table(columns, tuple(rows), filters=("suite", "state"))


def _page(night: SiteRun, folder: AnyPath, otherwise: str | None = None) -> str:
    """Returns a link to the page of what a run found; without one to its directory."""
    if night.found.page in night.pages:
        return _address(night, folder, night.found.page)
    return _address(night, folder) if otherwise is None else otherwise


def _address(night: SiteRun, folder: AnyPath, page: str = "") -> str:
    """Returns a link from the page to a run directory or a page in it; empty if none leads."""
    ours, theirs = str(folder), str(night.folder)
    target = f"{theirs}/{page}" if page else theirs
    if "://" not in ours + theirs:
        way = os.path.relpath(os.path.abspath(target), os.path.abspath(ours))  # noqa: PTH100
        return quote(os.fsencode(way))
    scheme, _, place = target.partition("://")
    if ours.partition("/")[0] == theirs.partition("/")[0]:
        _, _, here = ours.partition("://")
        if here.partition("/")[0] == place.partition("/")[0]:
            return quote(os.path.relpath(f"/{place}", f"/{here}"))
    return f"https://storage.cloud.google.com/{quote(place)}" if scheme == "gs" else ""
