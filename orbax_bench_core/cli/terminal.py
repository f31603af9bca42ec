"""Standard streams on which no text of others moves the cursor, and consoles that draw on them."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

_ORDER: Final = re.compile(r"^([ \t]*)(::|##\[)", re.MULTILINE)
"""Beginning of a line that GitHub Actions obeys, whose log may have what other machines printed."""

_LAYOUT: Final = dict.fromkeys(map(ord, "\t\n\r"))
"""Control characters that lay out what we print; `str.isprintable` counts them as others."""

_PERHAPS_SECRET: Final = re.compile(r"://[^\s\"'<>]*[@=]")


@contextlib.contextmanager
def printable_streams() -> Iterator[None]:
    """Has all that is printed meanwhile written out what a terminal would obey."""
    # It is written as JSON has it, an escape as a backslash and u001b, so that JSON stays JSON.
    # Bytes of a name that are no text are shown as well, and credentials in addresses are left out.
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = _Printable(before[0]), _Printable(before[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


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
    return _ORDER.sub(lambda found: f"{found[1]}{_written(found[2][0])}{found[2][1:]}", text)


def _written(character: str) -> str:
    """Returns a character as JSON has it; a carriage return stays, as our output may have it."""
    return character if character == "\r" else f"\\u{ord(character):04x}"


class _Printable:
    """A text stream that writes out control characters."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        if stream.isatty():
            # Rich draws by escapes; a console of `new_console` has none of others in them.
            self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        return self._stream.write(_written_out(text))

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


def print_plain(console: Console, line: str) -> None:
    """Prints a line of any length as it is."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)
