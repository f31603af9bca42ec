"""HTML renderer: a page that needs no other file, no network and no script."""

import functools
import html
import importlib.resources
import re
from collections.abc import Iterable
from typing import Final, assert_never

from orbax_bench_core.errors import presentable
from orbax_bench_core.pages import elements as el
from orbax_bench_core.pages.charts import to_small_svg, to_svg
from orbax_bench_core.pages.escaping import escaped, inline

_RELATIVE: Final = re.compile(r"(?![a-z][a-z0-9+.-]*:)[^/\\]", re.IGNORECASE)
"""Addresses that are linked to: those of files next to the page."""
_SHORT: Final = {"number": "n"}
"""Classes by what they stand for: of hundreds of cells a long one is a tenth of the page."""
_FEWEST_STACKED: Final = 3
"""Columns from which on a phone shows each row of a table as lines of its own."""


def to_html(document: el.Document) -> str:
    """Returns an answer as a page, which follows the reader's choice of light or dark.

    A policy in the page lets it load nothing and run nothing.
    """
    answer = document.headline
    word, text = answer.said.removesuffix(answer.text), inline(answer.text)
    h1 = f'<span class="{answer.role}">{inline(word.strip())}</span> {text}' if word else text
    about = f'<p class="dim about">{inline(document.about)}</p>'
    body = f"{about}\n<h1>{h1}</h1>\n{_joined(document.all)}"
    page = _template().replace("{{title}}", escaped(f"{answer.said} {document.about}"))
    return page.replace("{{body}}", body)


@functools.cache
def _template() -> str:
    file = importlib.resources.files("orbax_bench_core.pages").joinpath("page.html")
    return file.read_text(encoding="utf-8")


def _element(element: el.Element) -> str:
    match element:
        case el.Text(text, role, items):
            said = f'<p class="{role}">{inline(text)}</p>' if text else ""
            listed = "".join(f"<li>{inline(item)}</li>" for item in items)
            return f'{said}<ul class="{role}">{listed}</ul>' if items else said
        case el.Code(text, caption):
            said = f"<p>{inline(caption)}</p>" if caption else ""
            return f'{said}<pre tabindex="0">{html.escape(presentable(text).rstrip())}</pre>'
        case el.Table():
            return _table(element)
        case el.Chart():
            return to_svg(element)
        case el.Details(summary, elements):
            return f"<details><summary>{inline(summary)}</summary>{_joined(elements)}</details>"
        case el.Section(heading, elements):
            return f"<h2>{inline(heading)}</h2>{_joined(elements)}"
        case _:
            assert_never(element)


def _joined(elements: Iterable[el.Element]) -> str:
    return "\n".join(map(_element, el.shown(elements)))


def _table(table: el.Table) -> str:
    heads = "".join(
        f"<th scope=col{_looks(column.kind)}>{inline(column.heading)}</th>"
        for column in table.columns
    )
    bodies, group = [], ""
    choices = _choices(table)
    for row in table.rows:
        if row.group != group:
            group, across = row.group, len(table.columns)
            label = f'<th scope="rowgroup" colspan="{across}">{inline(group)}</th>'
            bodies.append(f'<tr class="group">{label}</tr>')
        cells = "".join(map(_cell, table.columns, row.cells, range(len(row.cells))))
        chosen = "".join(
            f" data-f{place}={choices[place].index(el.as_cell(row.cells[place]).text)}"
            for place in choices
        )
        bodies.append(f"<tr{' class=dim' * row.dim}{chosen}>{cells}</tr>")
    stacked = ' class="stack"' if len(table.columns) >= _FEWEST_STACKED else ""
    return (
        f'{_filter(table, choices)}<div class="wide" tabindex="0"><table{stacked}>'
        f"<thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(bodies)}</tbody></table></div>"
    )


def _choices(table: el.Table) -> dict[int, list[str]]:
    """Returns the values of each column that rows are chosen by, by its place."""
    return {
        place: list(dict.fromkeys(el.as_cell(row.cells[place]).text for row in table.rows))
        for place, column in enumerate(table.columns)
        if column.heading in table.filters
    }


def _filter(table: el.Table, choices: dict[int, list[str]]) -> str:
    """Returns a list to choose from for each such column; style sheets alone hide other rows."""
    lists, rules = [], []
    for place, values in choices.items():
        options = "".join(
            f"<option value={at}>{escaped(value)}</option>" for at, value in enumerate(values)
        )
        lists.append(
            f"<label>{escaped(table.columns[place].heading)} <select class=f{place}>"
            f'<option value="">all</option>{options}</select></label>'
        )
        rules += [
            f".filter:has(.f{place} [value='{at}']:checked) + .wide "
            f"[data-f{place}]:not([data-f{place}='{at}'])"
            for at in range(len(values))
        ]
    if not lists:
        return ""
    hides = f"<style>{', '.join(rules)} {{ display: none !important; }}</style>"
    return f'{hides}<div class="filter">{" ".join(lists)}</div>'


def _cell(column: el.Column, given: str | el.Cell, place: int) -> str:
    cell = el.as_cell(given)
    text = f"<code>{escaped(cell.text)}</code>" if column.kind == "code" else inline(cell.text)
    if cell.chart is not None:
        text = to_small_svg(cell.chart)
    if _RELATIVE.match(cell.href):
        text = f'<a href="{html.escape(cell.href)}">{text}</a>'
    looks = _looks(column.kind, cell.role)
    if not place:
        named = f' data-of="{escaped(column.heading)}"' if column.kind == "number" else ""
        return f"<th scope=row{looks}{named}>{text}</th>"
    return f'<td{looks} data-of="{escaped(column.heading)}">{text}</td>'


def _looks(*names: str) -> str:
    """Returns the class of a cell, or nothing if the style sheet has no rule for it."""
    known = [_SHORT.get(name, name) for name in names if name not in ("text", "plain")]
    said = " ".join(known)
    return f' class="{said}"' if len(known) > 1 else f" class={said}" if known else ""
