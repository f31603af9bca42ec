"""Document of a morning page."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.history import trends_table, what_ran_in
from orbax_bench_core.errors import UserError
from orbax_bench_core.exports.site.gathering import Cards, Site, SiteRun, gather
from orbax_bench_core.files import AnyPath, place, read_json, write_atomically

_MARKS: Final[Mapping[str, tuple[str, doc.Role]]] = {
    "REGRESSION": ("✗", "bad"),
    "LEAK": ("✗", "bad"),
    "not back": ("✗", "bad"),
    "failed": ("✗", "bad"),
    "PASS": ("✓", "good"),
    "INCONCLUSIVE": ("?", "unsure"),
    "COMPARED": ("✓", "plain"),
    "not judged": ("?", "unsure"),
    "incomplete": ("…", "unsure"),
    "running": ("…", "plain"),
    "complete": ("✓", "plain"),
}
_ORDER: Final = tuple(_MARKS)
_TRENDS: Final = (
    "Every run is a dot: the ratio of candidate to reference, or seconds; the lines are levels "
    "between changes. A thin stroke is another release, a coloured one a change, which is a "
    "question until a paired comparison answers it."
)


def site_document(site: Site, folder: AnyPath) -> doc.Document:
    """Returns the morning page."""
    suites = site.suites()
    title = _title(suites)
    made = f"Written {site.made_at:%Y-%m-%d %H:%M} UTC, from {doc.count(len(site.nights), 'run')}"
    older = f"; {doc.count(site.older, 'older run')} left out" if site.older else ""
    elements: list[doc.Element] = [
        doc.Heading(title if suites else "No run yet", level=1),
        doc.Paragraph(f"{made}{older}. Every run writes it again.", "dim"),
    ]
    if suites:
        elements += [
            _filter(site),
            doc.Heading("Latest of each suite"),
            _latest(suites, folder),
            *_trends(site, suites),
            doc.Heading("Runs"),
            _runs(site, folder),
        ]
    unread = tuple(map(doc.Span, site.unread))
    elements.append(doc.Section("Could not be read", (doc.Items(unread),) if unread else ()))
    return doc.Document(
        title=f"orbax-bench: {title}", elements=tuple(elements), brief=_brief(suites)
    )


def _title(suites: Mapping[str, Sequence[SiteRun]]) -> str:
    states = Counter(nights[0].state for nights in suites.values())
    said = [f"{states[state]} {state}" for state in _MARKS if states[state]]
    return f"{', '.join(said)} in {doc.count(len(suites), 'suite')}"


def _filter(site: Site) -> doc.Filter:
    nights = {night.info.run_id: night for night in site.nights}
    return doc.Filter(
        "runs",
        {key: f"{key} {each.info.suite_name} {_name(each)}" for key, each in nights.items()},
        {
            "suite": {key: each.info.suite_name for key, each in nights.items()},
            "state": {key: each.state for key, each in nights.items()},
        },
    )


def _latest(suites: Mapping[str, Sequence[SiteRun]], folder: AnyPath) -> doc.Table:
    worst_first = sorted(suites.values(), key=lambda nights: _ORDER.index(nights[0].state))
    rows = tuple(
        doc.Row(
            (
                doc.Span(nights[0].info.suite_name, strong=True),
                _state(nights[0], folder),
                doc.Span(f"{nights[0].info.created_at:%Y-%m-%d %H:%M}"),
                doc.Span(nights[0].found.answer or "–"),
                _since(nights),
            ),
            key=nights[0].info.run_id,
        )
        for nights in worst_first
    )
    columns = (
        doc.Column("suite"),
        doc.Column("state", "fixed"),
        doc.Column("begun", "fixed"),
        doc.Column("what it found", "prose"),
        doc.Column("since"),
    )
    return doc.Table(columns, rows, sorts=True)


def _since(nights: Sequence[SiteRun]) -> str:
    """Returns how long the state of a suite has been what it is."""
    same = 0
    while same < len(nights) and nights[same].state == nights[0].state:
        same += 1
    since = nights[same - 1].info.created_at
    return f"{doc.count(same, 'run')}, {since:%Y-%m-%d}"


def _trends(site: Site, suites: Mapping[str, Sequence[SiteRun]]) -> list[doc.Element]:
    keys = {name: nights[0].info.run_id for name, nights in suites.items()}
    table = trends_table({name: site.histories[name] for name in keys}, keys)
    return (
        [doc.Heading("Trends"), doc.Paragraph(_TRENDS, "dim"), table] if table is not None else []
    )


def _runs(site: Site, folder: AnyPath) -> doc.Table:
    ran: dict[str, str] = {}
    for found in site.histories.values():
        ran |= what_ran_in(found)
    rows = tuple(
        doc.Row(
            (
                doc.Span(_name(night), href=_address(night, folder)),
                doc.Span(night.info.suite_name),
                doc.Span(f"{night.info.created_at:%Y-%m-%d %H:%M}"),
                _state(night, folder),
                doc.Span(ran.get(night.info.run_id, "–")),
                _pages(night, folder),
            ),
            key=night.info.run_id,
        )
        for night in site.nights
    )
    columns = (
        doc.Column("run"),
        doc.Column("suite"),
        doc.Column("begun", "fixed"),
        doc.Column("state", "fixed"),
        doc.Column("what ran"),
        doc.Column("pages"),
    )
    return doc.Table(columns, rows, sorts=True)


def _state(night: SiteRun, folder: AnyPath) -> doc.Span:
    mark, role = _MARKS[night.state]
    page = night.found.page
    href = _address(night, folder, page) if page in night.pages else ""
    return doc.Span(f"{mark} {night.state}", role, strong=role == "bad", href=href)


def _pages(night: SiteRun, folder: AnyPath) -> doc.Text:
    said: list[str | doc.Span] = []
    for page in night.pages:
        name = page.removesuffix(".html").replace("_", " ")
        said += [", "] if said else []
        said.append(doc.Span(name, href=_address(night, folder, page)))
    return tuple(said) or "–"


def _name(night: SiteRun) -> str:
    return str(night.folder.name)


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


def _brief(suites: Mapping[str, Sequence[SiteRun]]) -> tuple[doc.Element, ...]:
    lines = []
    for name, nights in suites.items():
        mark, role = _MARKS[nights[0].state]
        said = (doc.Span(f"{mark} {nights[0].state}", role), f" {name}: {_since(nights)}")
        lines.append(doc.Paragraph(said))
    return tuple(lines) or (doc.Paragraph("No run yet."),)


PAGE: Final = "index.html"
MOST_RUNS: Final = 60
"""Runs of a suite on a page, unless told otherwise: a season of nights."""

_SETTINGS: Final = "site.json"


def write_site(places: Iterable[str], folder: str, *, most: int = MOST_RUNS) -> Site:
    """Writes `index.html`, `site.json` and what finished runs say into a folder, local or gs://."""
    given, root = list(places), place(folder)
    if not all(given):
        raise UserError("the path of a folder is empty; name one, or `.` for this one")
    cards = Cards(root)
    site = gather(given, most=most, cards=cards)
    kept = [_kept(place, folder) for place in given]
    settings = {"schema_version": 1, "places": kept, "most": most}
    write_atomically(root / _SETTINGS, json.dumps(settings, indent=1).encode())
    write_atomically(root / PAGE, doc.to_html(site_document(site, root)).encode())
    cards.write()
    return site


def has_site(folder: AnyPath) -> bool:
    """Returns whether a folder has a page that runs write again; no, where it cannot be asked."""
    if str(folder).endswith("//"):
        return False
    try:
        return bool(place(folder / _SETTINGS).exists())
    except (OSError, ImportError, ValueError):
        return False


def renew_site(folder: AnyPath) -> None:
    """Writes the page of a folder again, with the places that it was made from."""
    path = folder / _SETTINGS
    try:
        settings = read_json(path)
        places = [_found(str(place), folder) for place in settings["places"]]
        most = int(settings["most"])
    except (ValueError, KeyError, TypeError, OverflowError):
        raise UserError(f"{path} is none that `orbax-bench site` has written") from None
    write_site(places, str(folder), most=most)


def _kept(place: str, folder: str) -> str:
    """Returns a place as the settings of a page have it: of one disk, relative to the page.

    Later runs begin in other folders, and a folder of pages may be moved as a whole.
    """
    if "://" in place:
        return place
    if "://" in folder:
        return os.path.abspath(place)  # noqa: PTH100 - nothing is resolved
    return os.path.relpath(place, folder)


def _found(place: str, folder: AnyPath) -> str:
    return place if "://" in place else os.path.normpath(os.path.join(str(folder), place))  # noqa: PTH118
