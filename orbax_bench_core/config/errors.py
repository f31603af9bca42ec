"""User errors with the place of the mistake and its remedy; messages for invalid keys."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable
from typing import Any, Final

from orbax_bench_core.config.redaction import redacted

_LONGEST_MESSAGE: Final = 1_900
"""Characters of all that is said of one command line or file: nobody reads more than a screen."""
_LONGEST_VALUE: Final = 200
_END: Final = 300
"""Characters of the end of a long message, which says what to do."""
_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What moves a cursor, ends a line or turns text around, and halves of characters, which no file
can hold."""

_KINDS: Final = {"tuple_type": "a list", "dict_type": "a mapping", "model_type": "a mapping"}


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        message: What was given, what is allowed, what to do.
        key: Dotted path of the key at fault; empty for the file as a whole.
        file: The file it is in; empty when the suite did not come from a file.
        line: 1-based line in that file; None where there is none to name.
    """

    message: str
    key: str = ""
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line is not None else self.file
        return ": ".join(part for part in (place, self.key, self.message) if part)


class UserError(Exception):
    """A mistake that the user can mend: a suite, a flag, a path or a file (exit code 2).

    Attributes:
        problems: One per mistake, so that all of them can be mended at once.
    """

    def __init__(self, *problems: Problem | str) -> None:
        self.problems = tuple(
            Problem(problem) if isinstance(problem, str) else problem for problem in problems
        )
        super().__init__("\n".join(self.said))

    @property
    def said(self) -> tuple[str, ...]:
        """The problems as people read them: the first ones, and how many there are more."""
        lines = [_on_a_screen(presentable(str(problem))) for problem in self.problems]
        kept = lines[:1]
        for line in lines[1:]:
            if sum(map(len, kept)) + len(line) > _LONGEST_MESSAGE:
                break
            kept.append(line)
        more = len(lines) - len(kept)
        return (*kept, f"and {more:,} more") if more else tuple(kept)


class SuiteError(UserError):
    """A suite file is wrong."""


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Returns a hint for an unknown name: the nearest known one, or all of them."""
    known = list(known)
    nearest = difflib.get_close_matches(given, known, n=1, cutoff=0.6)
    if nearest:
        return f"did you mean {nearest[0]!r}?"
    return f"known: {', '.join(sorted(known))}" if known else "nothing is known here"


def explain(detail: Any, fields: Iterable[str]) -> str:
    """Returns the message of one of `pydantic.ValidationError.errors()`.

    `fields` are the keys that are allowed where the error is.
    """
    kind, message = detail["type"], str(detail["msg"])
    if kind == "extra_forbidden":
        return f"unknown key; {did_you_mean(str(detail['loc'][-1]), fields)}"
    if kind == "missing":
        return "this key is required"
    if kind in ("value_error", "assertion_error"):
        return message.removeprefix("Value error, ")
    if kind == "invalid_key":
        hint = " (YAML reads a bare on, off, yes or no as true or false)"
        given = detail["input"]
        return f"a key is text, got {given!r}{hint if isinstance(given, bool) else ''}; quote it"
    expected = _KINDS.get(kind) or message.removeprefix("Input should be ")
    return f"expected {expected}, got {shown(detail['input'])}"


def printable(text: str) -> str:
    """Returns a text in which characters that a terminal obeys are written out.

    An escape becomes a backslash, x1b; line feeds and tabs stay.
    """
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


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


def _on_a_screen(text: str) -> str:
    """Returns a message whose middle is left out where it is long."""
    if len(text) <= _LONGEST_MESSAGE:
        return text
    kept = _LONGEST_MESSAGE - _END
    return f"{text[:kept]}... ({len(text):,} characters) ...{text[-_END:]}"
