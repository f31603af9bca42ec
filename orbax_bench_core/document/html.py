"""HTML renderer: pages that need no other file and no network, light or dark."""

import base64
import functools
import hashlib
import importlib.resources
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NewType, assert_never

from orbax_bench_core.document import elements as el
from orbax_bench_core.document import figures
from orbax_bench_core.errors import presentable
from orbax_bench_core.pages import UNIT

_UNBROKEN: Final = re.compile(rf"(\d) (?={UNIT})")
_SAFE: Final = re.compile(r"(?i)https?://|file://|(?![a-z][a-z0-9+.-]*:)[^/]")
"""Addresses that are linked to: of web pages and files, and relative ones."""
Safe = NewType("Safe", str)
"""Text of a page in which everything that is not ours is escaped."""
NOTHING: Final = Safe("")
_ENTITIES: Final = {"&": "&amp;", ">": "&gt;", "<": "&lt;", "'": "&#39;", '"': "&#34;"}
_QUOTED: Final = re.compile(r"`([^`]+)`")


def tag(name: str, inside: Safe, **attributes: str) -> Safe:
    """Returns an element; an attribute `class_` is a class, and an empty one is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for key, value in attributes.items()
        if value
    )
    return Safe(f"<{name}{given}>{inside}</{name}>")


def joined(parts: Iterable[Safe], between: str = "") -> Safe:
    """Returns parts of a page as one."""
    return Safe(between.join(parts))


def plain(text: str) -> Safe:
    """Returns a text of others as it is shown; a number and its unit stay on one line."""
    return escaped(_UNBROKEN.sub("\\1\u00a0", presentable(text)))


def escaped(text: str) -> Safe:
    """Returns text that stands for itself between tags and within quotes."""
    for char, entity in _ENTITIES.items():
        text = text.replace(char, entity)
    return Safe(text)


def sentence(paragraph: el.Paragraph) -> Safe:
    """Returns a paragraph with its mark before it."""
    parts = [inline(paragraph.mark), inline(paragraph.text)]
    return joined(filter(None, parts), " ")


def inline(text: el.Text) -> Safe:
    """Returns a text with its spans."""
    return joined(map(piece, el.spans(text)))


def piece(given: str | el.Span) -> Safe:
    """Returns one span, or a text in which what is between backquotes is code."""
    if isinstance(given, str):
        return Safe(_QUOTED.sub(r"<code>\1</code>", plain(given)))
    text = tag("code", plain(given.text)) if given.code else plain(given.text)
    looks = f"{role_class(given.role)} {'strong' if given.strong else ''}".strip()
    text = tag("span", text, class_=looks) if looks else text
    return tag("a", text, href=given.href) if _SAFE.match(given.href) else text


def role_class(role: str) -> str:
    """Returns the class of a role; empty for that of all other text."""
    return "" if role == "plain" else role


_USUAL_HEIGHT: Final = el.Plot("", ()).height
_FEWEST_STACKED: Final = 3
"""Columns of a table from which on a phone shows each of its rows as lines of its own."""

_LOOKS: Final = {
    "number": "white-space: nowrap; text-align: right;",
    "fixed": "white-space: nowrap;",
    "prose": "overflow-wrap: anywhere;",
}
"""Style of the cells of a column below its heading, by its kind."""

_TONES: Final = {
    "plain": "--ink",
    "dim": "--dim",
    "good": "--pass",
    "bad": "--regression",
    "unsure": "--inconclusive",
    "bar": "--bar",
    **{name.strip("-"): name for name in figures.SERIES},
}


def to_html(document: el.Document) -> str:
    """Returns a document as one HTML page, which follows the reader's choice of light or dark.

    A policy in the page lets it load nothing, and run no script but its own.
    """
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orbax_bench_core.document", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["variables"] = figures.variables
    script, digest = _script()
    tones = " ".join(f".t-{tone} {{ --t: var({name}); }}" for tone, name in _TONES.items())
    return environment.get_template("page.html.jinja").render(
        title=presentable(document.title),
        body=Markup(_body(document.elements)),  # noqa: S704 - escaped
        labels=Markup("\n".join(dict.fromkeys(_labels(document.elements)))),  # noqa: S704 - escaped
        tones=tones,
        script=Markup(script),  # noqa: S704 - a file of this room
        digest=digest,
    )


@functools.cache
def _script() -> tuple[str, str]:
    """Returns the script of every page, and its digest for the policy of the page."""
    source = importlib.resources.files("orbax_bench_core.document").joinpath("page.js")
    lines = (line.strip() for line in source.read_text(encoding="utf-8").splitlines())
    script = "\n".join(line for line in lines if line and not line.startswith("//"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return script, f"sha256-{digest}"


def _labels(elements: Iterable[el.Element]) -> Iterator[str]:
    """Yields rules that put the heading of its column before each cell, for narrow pages."""
    for element in elements:
        match element:
            case el.Table():
                yield from _column_rules(element)
            case el.Details() | el.Section():
                yield from _labels(element.elements)
            case el.Only(page="html"):
                yield from _labels(element.elements)
            case el.ByWidth():
                yield from _labels(element.wide)
            case _:
                pass


def _column_rules(table: el.Table) -> Iterator[str]:
    name, stacked = _name(table), len(table.columns) >= _FEWEST_STACKED
    for place, column in enumerate(table.columns[1:], start=2):
        cell = f".{name} tr:not(.remark, .point) > td:nth-child({place})"
        if column.kind in _LOOKS:
            yield f"{cell} {{ {_LOOKS[column.kind]} }}"
        if stacked:
            text = re.sub(r"[^\w /.%()-]", lambda char: f"\\{ord(char[0]):x} ", column.heading)
            whole = f"{cell} {{ flex: 1 0 100%; }} " if column.kind == "prose" else ""
            told = f'{cell}:not(:empty)::before {{ content: "{text} "; }}'
            yield f"@media (max-width: 44rem) {{ {whole}{told} }}"


def _name(table: el.Table) -> str:
    """Returns a class that tables with the same headings share."""
    headings = "\0".join(f"{column.kind} {column.heading}" for column in table.columns)
    return f"h{hashlib.sha256(headings.encode()).hexdigest()[:6]}"


def _body(elements: Iterable[el.Element]) -> Safe:
    """Returns elements below each other; figures that follow each other are put together."""
    shown = []
    for drawn, group in itertools.groupby(
        elements, key=lambda element: isinstance(element, el.Figure)
    ):
        parts = [part for element in group if (part := _element(element))]
        shown += [tag("div", joined(parts, "\n"), class_="figures")] if drawn else parts
    return joined(shown, "\n")


def _element(element: el.Element) -> Safe:
    match element:
        case el.Heading():
            return tag(f"h{element.level}", inline(element.text))
        case el.Paragraph():
            return tag("p", sentence(element), class_=role_class(element.role))
        case el.Items():
            return tag("ul", joined((tag("li", inline(item)) for item in element.items), "\n"))
        case el.Code():
            return tag("pre", escaped(presentable(element.text).rstrip()))
        case el.Facts():
            pairs = (
                joined((tag("dt", inline(name)), tag("dd", inline(fact))))
                for name, fact in element.pairs
            )
            return tag("dl", joined(pairs, "\n"))
        case el.Table():
            inside = joined(_parts(element), "\n")
            return tag("div", tag("table", inside, class_=_classes(element)), class_="wide")
        case el.Figure():
            with figures.style():
                drawing = element.draw()
            # Nothing of the user's is in it that was not escaped when it was drawn.
            return tag("div", Safe(figures.svg(drawing, title=element.title)))
        case el.Plot():
            return _plot(element)
        case el.Legend():
            items = (
                Safe(f'<li><i class="t-{tone}"></i>{inline(text)}</li>')
                for tone, text in element.tones
            )
            return tag("ul", joined(items), class_="key")
        case el.Filter():
            return _filter(element)
        case el.Callout():
            inside = joined((tag("b", piece(element.word)), tag("p", inline(element.text))))
            return tag("div", inside, class_=f"callout {role_class(element.word.role)}")
        case el.Details():
            summary, given = (
                tag("summary", inline(element.summary)),
                " open" if element.open else "",
            )
            return Safe(f"<details{given}>\n{summary}\n{_body(element.elements)}\n</details>")
        case el.Section():
            shown = _body(element.elements)
            heading = tag("h2", inline(element.heading))
            parts = filter(None, (heading, _body(element.lead), shown))
            return joined(parts, "\n") if shown else NOTHING
        case el.Only():
            return _body(element.elements) if element.page == "html" else NOTHING
        case el.ByWidth():
            return _body(element.wide)
        case _:
            assert_never(element)


def _classes(table: el.Table) -> str:
    stacked = "stack" if len(table.columns) >= _FEWEST_STACKED else ""
    return " ".join(filter(None, (_name(table), stacked, "sorts" if table.sorts else "")))


def _parts(table: el.Table) -> Iterator[Safe]:
    headings = [tag("th", inline(c.heading), scope="col", class_=c.kind) for c in table.columns]
    if table.plots:
        headings.append(tag("th", inline(table.plots), scope="col", class_="range"))
    across = len(headings)
    yield tag("thead", tag("tr", joined(headings)))
    rows = [_row(table.columns, row) for row in table.rows]
    if table.empty and not table.rows and not table.groups:
        cell = tag("td", inline(table.empty), colspan=str(across))
        rows = [tag("tr", cell, class_="remark")]
    if rows:
        yield tag("tbody", joined(rows, "\n"))
    for group in table.groups:
        rows = list(_group(table.columns, group, across))
        yield tag("tbody", joined(rows, "\n"), data_k=group.key, style=_grid(group.axis))


def _group(columns: tuple[el.Column, ...], group: el.Group, across: int) -> Iterator[Safe]:
    axis = tag("td", _axis(group.axis), class_="range") if group.axis else joined(())
    span = str(across - 1 if group.axis else across)
    label = tag("th", inline(group.label), scope="rowgroup", colspan=span)
    yield tag("tr", joined((label, axis)), class_="point")
    for remark in group.intro:
        yield _remark(remark, across)
    for row in group.rows:
        yield _row(columns, row)
    for remark in group.remarks:
        yield _remark(remark, across)


def _remark(remark: el.Paragraph, across: int) -> Safe:
    cell = tag("td", sentence(remark), class_=role_class(remark.role), colspan=str(across))
    return tag("tr", cell, class_="remark")


def _row(columns: tuple[el.Column, ...], row: el.Row) -> Safe:
    first, *others = columns
    cells = [tag("th", _cell(row.cells[0]), scope="row", class_=first.kind)]
    for _, cell in zip(others, row.cells[1:], strict=True):
        cells.append(tag("td", _cell(cell)))
    if row.plot is not None:
        cells.append(tag("td", _plot(row.plot), class_="range"))
    return tag("tr", joined(cells), class_="dim" if row.dim else "", data_k=row.key)


def _cell(cell: el.Text | el.Cell) -> Safe:
    if not isinstance(cell, el.Cell):
        return inline(cell)
    flags = (tag("span", plain(flag), class_="flag") for flag in cell.flags)
    notes = (tag("span", inline(note), class_="note") for note in cell.notes)
    return joined((inline(cell.text), *flags, *notes), " ")


def _axis(axis: el.Axis) -> Safe:
    ticks = (
        Safe(f'<span style="left:{place:.4g}%">{inline(label)}</span>') for place, label in axis
    )
    return tag("div", joined(ticks), class_="axis", aria_hidden="true")


def _grid(axis: el.Axis) -> str:
    """Returns a style that draws the ticks of an axis behind the plots of a group."""
    lines = (
        f"linear-gradient(90deg,#0000 calc({place:.4g}% - .5px),var(--line) 0 "
        f"calc({place:.4g}% + .5px),#0000 0)"
        for place, _ in axis
    )
    return f"--grid:{','.join(lines)}" if axis else ""


def _plot(plot: el.Plot) -> Safe:
    """Returns a plot that is stretched to its place; strokes keep their width."""
    usual = plot.height == _USUAL_HEIGHT
    height = "" if usual else f' style="height:{plot.height:g}em"'
    title, marks = tag("title", plain(plot.title)), joined(map(_mark, plot.marks))
    return Safe(
        '<svg class="plot" viewBox="0 0 1000 100" preserveAspectRatio="none" role="img"'
        f"{height}>{title}{marks}</svg>"
    )


def _mark(mark: el.Mark) -> Safe:
    places = [(f"{10 * across:.0f}", f"{down:.0f}") for across, down in mark.at]
    match mark.shape:
        case "dots":
            path = "".join(f"M{x} {y}h0" for x, y in places)
        case "ticks":
            path = "".join(f"M{x} 0V100" for x, _ in places)
        case "band":
            (left, top), (right, bottom) = places
            path = f"M{left} {top}H{right}V{bottom}H{left}Z"
        case "line":
            path = f"M{'L'.join(f'{x} {y}' for x, y in places)}"
    shape = f"{mark.shape} soft" if mark.shape == "band" and mark.tone == "bar" else mark.shape
    given = f'<path class="{shape} t-{mark.tone}" d="{path}"'
    if not mark.title:
        return Safe(f"{given}/>")
    return Safe(f"{given}><title>{plain(mark.title)}</title></path>")


def _filter(found: el.Filter) -> Safe:
    """Returns a place for controls, which the script of the page makes from what is in it."""
    choices = {name: _presentable(of_each) for name, of_each in found.choices.items()}
    content = {"what": found.what, "names": _presentable(found.names), "choices": choices}
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # No text of the user's ends the element.
    data = data.replace("<", "\\u003c").replace("&", "\\u0026")
    script = f'<script type="application/json">{data}</script>'
    return Safe(f'<div class="filter" role="search" hidden>{script}</div>')


def _presentable(texts: Mapping[str, str]) -> dict[str, str]:
    return {key: presentable(text) for key, text in texts.items()}
