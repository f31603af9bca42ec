"""HTML renderer: pages that need no other file and no network, light or dark."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, assert_never

from orbax_bench_core.document import figures
from orbax_bench_core.document.elements import (
    ByWidth,
    Callout,
    Cell,
    Code,
    Column,
    Details,
    Document,
    Element,
    Facts,
    Figure,
    Group,
    Heading,
    Items,
    Only,
    Paragraph,
    Row,
    Section,
    Span,
    Table,
    Text,
    spans,
)

if TYPE_CHECKING:
    from markupsafe import Markup


def to_html(document: Document) -> str:
    """Returns a document as one HTML page, which follows the reader's choice of light or dark."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orbax_bench_core.document", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["variables"] = figures.variables
    return environment.get_template("page.html.jinja").render(
        title=document.title, body=_body(document.elements)
    )


def _tag(name: str, inside: Markup, **attributes: str) -> Markup:
    """Returns an element; an attribute `class_` is a class, and an empty one is left out."""
    from markupsafe import Markup

    given = "".join(
        Markup(' {}="{}"').format(key.rstrip("_"), value)
        for key, value in attributes.items()
        if value
    )
    # The names are constants of this module.
    return Markup(f"<{name}{given}>{{}}</{name}>").format(inside)  # noqa: S704


def _join(parts: Iterable[Markup], between: str = "") -> Markup:
    from markupsafe import Markup

    return Markup(between).join(parts)  # noqa: S704 - constants of this module


def _body(elements: Iterable[Element]) -> Markup:
    """Returns elements below each other; figures that follow each other are put together."""
    shown = []
    for drawn, group in itertools.groupby(
        elements, key=lambda element: isinstance(element, Figure)
    ):
        parts = [part for element in group if (part := _element(element))]
        shown += [_tag("div", _join(parts, "\n"), class_="figures")] if drawn else parts
    return _join(shown, "\n")


def _element(element: Element) -> Markup:
    from markupsafe import Markup

    match element:
        case Heading():
            return _tag(f"h{element.level}", _line(element.text))
        case Paragraph():
            return _tag("p", _sentence(element), class_=_role(element.role))
        case Items():
            return _tag("ul", _join((_tag("li", _line(item)) for item in element.items), "\n"))
        case Code():
            return _tag("pre", _piece(Span(element.text.rstrip())))
        case Facts():
            pairs = (
                _tag("dt", _line(name)) + _tag("dd", _line(fact)) for name, fact in element.pairs
            )
            return _tag("dl", _join(pairs, "\n"))
        case Table():
            return _tag("div", _tag("table", _join(_parts(element), "\n")), class_="wide")
        case Figure():
            with figures.style():
                drawing = element.draw()
            # Nothing of the user's is in it that was not escaped when it was drawn.
            return _tag("div", Markup(figures.svg(drawing, title=element.title)))  # noqa: S704
        case Callout():
            inside = _tag("b", _piece(element.word)) + _tag("p", _line(element.text))
            return _tag("div", inside, class_=f"callout {_role(element.word.role)}")
        case Details():
            folded = Markup("<details{}>\n{}\n{}\n</details>")
            summary = _tag("summary", _line(element.summary))
            return folded.format(
                Markup(" open") if element.open else "", summary, _body(element.elements)
            )
        case Section():
            shown = _body(element.elements)
            heading = _tag("h2", _line(element.heading))
            parts = filter(None, (heading, _body(element.lead), shown))
            return _join(parts, "\n") if shown else Markup()
        case Only():
            return _body(element.elements) if element.page == "html" else Markup()
        case ByWidth():
            return _body(element.wide)
        case _:
            assert_never(element)


def _parts(table: Table) -> Iterator[Markup]:
    headings = [_tag("th", _line(c.heading), scope="col", class_=c.kind) for c in table.columns]
    if table.bars:
        headings.append(_tag("th", _line(table.bars), scope="col"))
    across = str(len(headings))
    yield _tag("thead", _tag("tr", _join(headings)))
    rows = [_row(table.columns, row) for row in table.rows]
    if table.empty and not table.rows and not table.groups:
        rows = [_tag("tr", _tag("td", _line(table.empty), colspan=across))]
    if rows:
        yield _tag("tbody", _join(rows, "\n"))
    for group in table.groups:
        yield _tag("tbody", _join(_group(table.columns, group, across), "\n"))


def _group(columns: tuple[Column, ...], group: Group, across: str) -> Iterator[Markup]:
    label = _tag("th", _line(group.label), scope="rowgroup", colspan=across)
    yield _tag("tr", label, class_="point")
    for remark in group.intro:
        yield _remark(remark, across)
    for row in group.rows:
        yield _row(columns, row)
    for remark in group.remarks:
        yield _remark(remark, across)


def _remark(remark: Paragraph, across: str) -> Markup:
    cell = _tag("td", _sentence(remark), class_=_role(remark.role), colspan=across)
    return _tag("tr", cell)


def _row(columns: tuple[Column, ...], row: Row) -> Markup:
    cells = [
        _tag("td", _cell(cell), class_=column.kind)
        for column, cell in zip(columns, row.cells, strict=True)
    ]
    if row.bar is not None:
        cells.append(_bar(*row.bar))
    return _tag("tr", _join(cells), class_="dim" if row.dim else "")


def _cell(cell: Text | Cell) -> Markup:
    if not isinstance(cell, Cell):
        return _line(cell)
    return _line(cell.text) + _join(_tag("span", _line(flag), class_="flag") for flag in cell.flags)


def _bar(start: float, mark: float, end: float) -> Markup:
    from markupsafe import Markup

    track = Markup(
        '<div class="span" style="left: {}%; width: {}%"></div>'
        '<div class="mark" style="left: {}%"></div>'
    ).format(round(start, 2), round(end - start, 2), round(mark, 2))
    return _tag("td", _tag("div", track, class_="track"), class_="range")


def _sentence(paragraph: Paragraph) -> Markup:
    parts = [_line(paragraph.mark), _line(paragraph.text)]
    return _join(filter(None, parts), " ")


def _line(text: Text) -> Markup:
    return _join(map(_piece, spans(text)))


def _piece(piece: str | Span) -> Markup:
    from markupsafe import Markup, escape

    if isinstance(piece, str):
        return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(piece))))  # noqa: S704
    text = _tag("code", escape(piece.text)) if piece.code else escape(piece.text)
    looks = f"{_role(piece.role)} {'strong' if piece.strong else ''}".strip()
    return _tag("span", text, class_=looks) if looks else text


def _role(role: str) -> str:
    return "" if role == "plain" else role
