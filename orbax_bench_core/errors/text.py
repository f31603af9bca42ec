"""Text of others that is safe to show: printable, without credentials, and not too long."""

import re
from collections.abc import Iterable
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


_ORDER: Final = re.compile(r"(^|[\n\r])([ \t]*)([:#])(?=:|#\[)")
"""Beginning of a line that the log of GitHub Actions obeys, such as `::error::` or `##[error]`."""


def without_orders(text: str) -> str:
    """Returns a text of which no line is an order to the log of CI that it is printed in."""
    return _ORDER.sub(lambda found: f"{found[1]}{found[2]}\\u{ord(found[3]):04x}", text)


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


def listed(texts: Iterable[object], most: int = 6) -> str:
    """Returns texts in a line; of many the first, and how many more there are."""
    every = list(map(str, texts))
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def on_a_screen(text: str) -> str:
    """Returns a message whose middle is left out where it is long."""
    if len(text) <= LONGEST_MESSAGE:
        return text
    kept = LONGEST_MESSAGE - _END
    return f"{text[:kept]}... ({len(text):,} characters) ...{text[-_END:]}"
