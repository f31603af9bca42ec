"""Results of a command: on standard output, for people or as JSON, and as pages."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.cli.terminal import new_console, print_plain

if TYPE_CHECKING:
    from etils import epath
    from pydantic import BaseModel
    from rich.console import Console

    from orbax_bench_core.document import Document

LOG_WIDTH: Final = 200
"""Columns of what is no terminal: a log has room for whole lines."""


def results_console() -> Console:
    """Returns a console on standard output as it is now, which a caller may redirect later."""
    out = sys.stdout
    if out.isatty():
        return new_console(file=out)
    return new_console(file=out, width=LOG_WIDTH, soft_wrap=True)


def show(what: Document | str, console: Console | None = None) -> None:
    """Shows a document, or a line of any length as it is."""
    console = console or results_console()
    if isinstance(what, str):
        print_plain(console, what)
        return
    from orbax_bench_core.document import print_document

    print_document(what, console)


def show_answer(
    found: BaseModel, document: Document, page: object = None, *, as_json: bool
) -> None:
    """Prints an answer on standard output: as JSON and nothing else, or for people."""
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    console = results_console()
    show(document, console)
    if page is not None:
        print_plain(console, f"Page: {page}")


def write_page(document: Document, file: epath.Path | str | None, flag: str = "--html") -> None:
    """Writes a document where a flag names a file, as HTML or as Markdown."""
    if file is None:
        return
    from orbax_bench_core.document import to_html, to_markdown
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import place, write_atomically

    render = to_markdown if flag == "--markdown" else to_html
    try:
        write_atomically(place(file) if isinstance(file, str) else file, render(document).encode())
    except OSError as failure:
        raise UserError(f"{flag}: cannot write {file}: {failure}") from None


def publish(
    document: Document, numbers: Any, html: str | None, markdown: str | None, *, as_json: bool
) -> None:
    """Prints a document, or its numbers as JSON, and writes its pages where files were named."""
    write_page(document, html)
    write_page(document, markdown, "--markdown")
    if as_json:
        print(json.dumps(numbers, indent=2))
    else:
        show(document)
