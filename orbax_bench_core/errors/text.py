"""Text that may be shown: no control characters, no credentials, no more than a screen."""

from __future__ import annotations

import re
import shlex
from typing import Final

from orbax_bench_core.errors.redaction import redacted

LONGEST_MESSAGE: Final = 1_900
"""Characters of all that is said of one command line or file: nobody reads more than a screen."""
_LONGEST_VALUE: Final = 200
_END: Final = 300
"""Characters of the end of a long message, which says what to do."""
CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that move a cursor, end a line or turn text around, and halves of characters, which no
file can hold."""


def printable(text: str) -> str:
    """Returns a text in which characters that a terminal obeys are written out.

    An escape becomes a backslash, x1b; line feeds and tabs stay.
    """
    return CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Returns a text of others that is part of a line: its line feeds are written out as well."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def presentable(text: str) -> str:
    """Returns a text of others for people: printable, and without credentials."""
    return redacted(printable(text))


def shown(value: object) -> str:
    """Returns a value as a message shows it: as Python writes it, and not all of a long one."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return f"a {type(value).__name__} of more digits than can be shown"
    return shortened(text)


def shortened(text: str) -> str:
    """Returns a text as part of a message, cut where it is long."""
    if len(text) <= _LONGEST_VALUE:
        return text
    return f"{text[:_LONGEST_VALUE]}... ({len(text):,} characters)"


def on_a_screen(text: str) -> str:
    """Returns a message whose middle is left out where it is long."""
    if len(text) <= LONGEST_MESSAGE:
        return text
    kept = LONGEST_MESSAGE - _END
    return f"{text[:kept]}... ({len(text):,} characters) ...{text[-_END:]}"


def command(*words: object) -> str:
    """Returns a command line of `orbax-bench` as a shell takes it, spaces included."""
    return shlex.join(["orbax-bench", *map(str, words)])
