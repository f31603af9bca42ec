"""Lines of a terminal: text broken between words, and a long name behind its commas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from orbax_bench_core.document.numbers import UNIT

if TYPE_CHECKING:
    from rich.text import Text

_WORD: Final = re.compile(rf"\s*\S+(?:(?<=\d) {UNIT}\S*)*\s*|\s+")
_PART: Final = re.compile(r"[^,]*,+\s*|[^,]+")


def folded(text: Text, width: int) -> list[Text]:
    """Returns the lines of a text on a terminal of so many columns.

    What is longer than a line, such as the name of a point with its options, is broken behind
    commas, and inside a word only where there is none.
    """
    lines = []
    for line in text.split("\n", allow_blank=True) or [text]:
        for part in line.divide(_breaks(line.plain, max(width, 1))):
            part.rstrip()
            lines.append(part)
    return lines


def _breaks(line: str, width: int) -> Iterator[int]:
    """Yields where a line is broken."""
    used = at = 0
    for part in _parts(line, width):
        size = len(part.rstrip())
        if used and used + size > width:
            yield at
            used = 0
        for cut in range(width, size, width):
            yield at + cut
            used = -cut
        used += len(part)
        at += len(part)


def _parts(line: str, width: int) -> Iterator[str]:
    """Yields what is kept on one line where it fits on one."""
    for word in _WORD.findall(line):
        if len(word.rstrip()) <= width:
            yield word
        else:
            yield from _PART.findall(word)
