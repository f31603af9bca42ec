"""Markdown renderer: documents as text, without their charts."""

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Final, assert_never
from urllib.parse import quote

from orbax_bench_core.errors import presentable, without_orders
from orbax_bench_core.pages import elements as el
from orbax_bench_core.pages.escaping import inline

_MARKUP: Final = re.compile(r"[\\`*\[\]|]|^(?:[#>+-]|~{3})|(?<![^\W_])_|_(?![^\W_])")
"""Characters with a meaning; an underscore within a word has none."""


def to_markdown(document: el.Document) -> str:
    """Returns an answer as Markdown, below its headline; of charts it has what they say."""
    blocks = [f"# {_inline(document.headline.said)}", _inline(document.about)]
    blocks += _blocks(document.all)
    return without_orders("\n\n".join(filter(None, blocks))) + "\n"


def _blocks(elements: Iterable[el.Element]) -> Iterator[str]:
    """Yields elements as blocks, between which a line is left empty."""
    for element in el.shown(elements):
        match element:
            case el.Text(text, _, items):
                yield _inline(text)
                yield "\n".join(f"- {_inline(item)}" for item in items)
            case el.Code(text, caption):
                yield _inline(caption)
                yield _fenced(text)
            case el.Table():
                yield from _table(element)
            case el.Chart():
                yield ": ".join(filter(None, map(_inline, (element.title, element.said))))
            case el.Details(summary, inner):
                # Between tags of HTML nothing is Markdown.
                yield f"<details><summary>{inline(summary)}</summary>"
                yield from _blocks(inner)
                yield "</details>"
            case el.Section(heading, inner):
                yield f"## {_inline(heading)}"
                yield from _blocks(inner)
            case _:
                assert_never(element)


def _table(table: el.Table) -> Iterator[str]:
    rule = ("---:" if column.kind == "number" else "---" for column in table.columns)
    heads = [_row(_inline(column.heading) for column in table.columns), _row(rule)]
    for group, rows in itertools.groupby(table.rows, key=lambda row: row.group):
        yield f"**{_inline(group)}**" if group else ""
        yield "\n".join([*heads, *(_row(map(_cell, table.columns, row.cells)) for row in rows)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(column: el.Column, given: str | el.Cell) -> str:
    cell = el.as_cell(given)
    text = _code(cell.text) if column.kind == "code" and cell.text else _inline(cell.text)
    return f"[{text}](<{quote(cell.href, safe='/.-_')}>)" if cell.href else text


def _inline(text: str) -> str:
    """Returns a text on one line, in which only what stands in backticks is markup."""
    parts = re.split("`([^`]+)`", " ".join(text.split()))
    return "".join(_code(part) if at % 2 else _plain(part) for at, part in enumerate(parts))


def _plain(text: str) -> str:
    text = presentable(text).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKUP.sub(r"\\\g<0>", text)


def _code(text: str) -> str:
    """Returns a name as a code span, in which nothing is markup, for a table or elsewhere."""
    line = " ".join(presentable(text).split()).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence, space = "`" * (longest + 1), " " if "`" in line[:1] + line[-1:] else ""
    return f"{fence}{space}{line}{space}{fence}"


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{presentable(text).rstrip()}\n{fence}"
