"""Standard streams on which no text of others moves the cursor, and results shown on them."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, Final

from orbax_bench_core.exit_codes import Exit

if TYPE_CHECKING:
    from etils import epath
    from pydantic import BaseModel
    from rich.console import Console

    from orbax_bench_core import pages
    from orbax_bench_core.cli.arguments import PageFlags

_LAYOUT: Final = dict.fromkeys(map(ord, "\t\n\r"))
"""Control characters that lay out what we print; `str.isprintable` counts them as others."""

_PERHAPS_SECRET: Final = re.compile(r"://[^\s\"'<>]*[@=]")


@contextlib.contextmanager
def printable_streams() -> Iterator[None]:
    """Has all that is printed meanwhile written out what a terminal would obey."""
    # It is written as JSON has it, an escape as a backslash and u001b, so that JSON stays JSON.
    # Bytes of a name that are no text are shown as well, and credentials in addresses are left out.
    # Where nobody reads on, as after `| head -1`, the command ends with the code of SIGPIPE; if all
    # was done by then, with its own. Python's own codes for that are those of other failures.
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = _Printable(before[0]), _Printable(before[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in before:
            try:
                stream.flush()
            except BrokenPipeError:
                _silence(stream)


def new_console(**settings: Any) -> Console:
    """Returns a console of rich that draws, and writes out what others' text has of control."""
    return _console_class()(**settings)  # type: ignore[no-any-return]


def _written_out(text: str) -> str:
    if _PERHAPS_SECRET.search(text):
        from orbax_bench_core.errors import redacted  # rarely needed, and help is to be quick

        text = redacted(text)
    if not text.translate(_LAYOUT).isprintable():
        from orbax_bench_core.errors import CONTROL

        text = CONTROL.sub(lambda found: _written(found.group()), text)
    if "::" in text or "##[" in text:
        from orbax_bench_core.errors import without_orders  # rarely needed, as above

        text = without_orders(text)
    return text


def _written(character: str) -> str:
    """Returns a character as JSON has it; a carriage return stays, as our output may have it."""
    return character if character == "\r" else f"\\u{ord(character):04x}"


@contextlib.contextmanager
def _ended_if_closed(stream: IO[str]) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        _silence(stream)
        sys.exit(Exit.PIPE_CLOSED)


def _silence(stream: IO[str]) -> None:
    """Has a stream that nobody reads write to nowhere, so that Python can flush it at the end."""
    with contextlib.suppress(OSError, ValueError):  # a stream of a test has no descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class _Printable:
    """A text stream that writes out control characters."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        if stream.isatty():
            # Rich draws by escapes; a console of `new_console` has none of others in them.
            self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        with _ended_if_closed(self._stream):
            return self._stream.write(_written_out(text))

    def flush(self) -> None:
        with _ended_if_closed(self._stream):
            self._stream.flush()

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@functools.cache
def _console_class() -> Any:
    from rich.console import Console
    from rich.segment import Segment

    class PrintableConsole(Console):
        @property
        def file(self) -> IO[str]:
            # While something is drawn again, rich puts a stream of its own before ours, and looks
            # behind one only.
            stream = super().file
            while behind := getattr(stream, "rich_proxied_file", None):
                stream = behind
            return stream

        @file.setter
        def file(self, new: IO[str]) -> None:
            self._file = new

        def _render_buffer(self, buffer: Any) -> str:
            return super()._render_buffer(
                piece if piece.control else Segment(_written_out(piece.text), piece.style)
                for piece in buffer
            )

    return PrintableConsole


def installed(version: str) -> str:
    """Returns the version of a package for people, of which records say only that it is unknown."""
    from orbax_bench_core.provenance import UNKNOWN

    return "not installed" if version == UNKNOWN else version


def print_plain(console: Console, line: str) -> None:
    """Prints a line of any length, which stays one whatever others' text is in it."""
    from orbax_bench_core.errors import one_line

    console.print(one_line(line), markup=False, highlight=False, soft_wrap=True)


LOG_WIDTH: Final = 200
"""Columns of what is no terminal: a log has room for whole lines."""


def results_console() -> Console:
    """Returns a console on standard output as it is now, which a caller may redirect later."""
    out = sys.stdout
    if out.isatty():
        return new_console(file=out)
    return new_console(file=out, width=LOG_WIDTH, soft_wrap=True)


def show(
    what: pages.Document | str,
    console: Console | None = None,
    *,
    details: bool = False,
) -> None:
    """Shows a document, or a line of any length."""
    console = console or results_console()
    if isinstance(what, str):
        print_plain(console, what)
        return
    from orbax_bench_core import pages

    pages.print_document(what, console, details=details)


def show_answer(
    found: BaseModel,
    document: pages.Document,
    page: object = None,
    *,
    as_json: bool,
    details: bool = False,
) -> None:
    """Prints an answer on standard output: as JSON and nothing else, or for people."""
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    console = results_console()
    show(document, console, details=details)
    if page is not None:
        print_plain(console, f"Page: {page}")


def write_page(
    document: pages.Document, file: epath.Path | str | None, flag: str = "--html"
) -> None:
    """Writes a document where a flag names a file, as HTML or as Markdown."""
    if file is None:
        return
    from orbax_bench_core import pages
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import place, write_atomically

    markdown = flag == "--markdown"
    text = pages.to_markdown(document) if markdown else pages.to_html(document)
    try:
        write_atomically(place(file) if isinstance(file, str) else file, text.encode())
    except OSError as failure:
        raise UserError(f"{flag}: cannot write {file}: {failure}") from None


def publish(document: pages.Document, numbers: Any, flags: PageFlags) -> None:
    """Prints a document, or its numbers as JSON, and writes its pages where files were named."""
    write_page(document, flags.html)
    write_page(document, flags.markdown, "--markdown")
    if flags.as_json:
        print(json.dumps(numbers, indent=2))
    else:
        show(document, details=flags.details)
