"""User errors: mistakes that the user can correct, with their place and remedy."""

import dataclasses
import difflib
import errno
import math
import re
import shlex
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from orbax_bench_core.errors.redaction import redacted
from orbax_bench_core.files import as_system_error

if TYPE_CHECKING:
    import pydantic


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong."""

    message: str  # what was given, what is allowed, what to do
    key: str = ""  # dotted path of the key at fault; empty for the file as a whole
    file: str = ""  # the file it is in; empty when the suite did not come from a file
    line: int | None = None  # 1-based line in that file; None if there is none to name

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line is not None else self.file
        parts = (one_line(place), one_line(self.key), self.message)
        return ": ".join(part for part in parts if part)


class UserError(Exception):
    """A mistake that the user can correct: a suite, a flag, a path or a file (exit code 2).

    Attributes:
        problems: One per mistake, so that all of them can be corrected at once.
        passing: Whether the same command may do better without a change of what it was given.
    """

    passing = False

    def __init__(self, *problems: Problem | str) -> None:
        self.problems = tuple(
            Problem(problem) if isinstance(problem, str) else problem for problem in problems
        )
        super().__init__("\n".join(self.said))

    @property
    def said(self) -> tuple[str, ...]:
        """The problems as people read them: the first ones, and how many there are more."""
        lines = [on_a_screen(presentable(str(problem))) for problem in self.problems]
        kept = lines[:1]
        for line in lines[1:]:
            if sum(len(one) + 2 for one in (*kept, line)) > LONGEST_MESSAGE:
                break
            kept.append(line)
        more = len(lines) - len(kept)
        return (*kept, f"and {more:,} more") if more else tuple(kept)


_MOST_NAMES: Final = 30
_SOME_NAMES: Final = 5
"""Of more names than anybody reads, so many are shown: those that are written most alike."""


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Returns a hint for an unknown name: the nearest known one, or all of them."""
    known = list(known)
    nearest = difflib.get_close_matches(given, known, n=1, cutoff=0.6)
    nearest = nearest or [name for name in known if given in name.split("_")]
    if len(nearest) == 1:
        return f"did you mean {nearest[0]!r}?"
    if len(known) > _MOST_NAMES:
        closest = difflib.get_close_matches(given, known, n=_SOME_NAMES, cutoff=0)
        return f"the nearest of {len(known)} names: {', '.join(closest)}"
    return f"known: {', '.join(sorted(known))}" if known else "nothing is known here"


def check_amounts(**amounts: float) -> None:
    """Checks amounts by name, before anything is measured that they would be taken from."""
    for name, amount in amounts.items():
        if not 0 <= amount < math.inf:
            raise UserError(f"{name}: expected a number of 0 or more, got {shown(amount)}")


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


def first_fault(error: "pydantic.ValidationError") -> str:
    """Returns the first mistake in data, after the dotted path of its key if it has one."""
    first = error.errors()[0]
    return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))


def command(*words: object) -> str:
    """Returns a command line of `orbax-bench` as a shell takes it, spaces included."""
    return shlex.join(["orbax-bench", *map(str, words)])


_UNWRITABLE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_PASSING: Final = (
    *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ECONNRESET, errno.ECONNABORTED),
    *(errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH),
)
"""What a file system of a network, or an object store, answers that is not well for a moment."""
_REMEDIES: Final = {
    errno.EISDIR: "a folder is in the place of a file; move it away",
    errno.ENOTDIR: "a file is in the place of a folder; move it away, or name another place",
    errno.EACCES: "ask for the right to it, or name another place",
}


class Refusal(NamedTuple):
    """An error that the user can correct."""

    error: UserError  # what to tell
    passing: bool  # whether the same may go well once there is room again, or the store is well


def may_pass(error: BaseException) -> bool:
    """Returns whether a store was not well: the same may go well in a minute, with nothing changed.

    So it is with an error that was made of what the system refused, and with a name that does not
    resolve: records of a service appear after its pods have started.
    """
    beneath: BaseException | None = error
    while beneath is not None and not isinstance(beneath, OSError):
        beneath = as_system_error(beneath) or beneath.__cause__ or beneath.__context__
    return beneath is not None and (
        beneath.errno in _PASSING or isinstance(beneath, TimeoutError | socket.gaierror)
    )


def remedy_of(error: OSError) -> str:
    """Returns the advice about an error of the system; empty if there is none."""
    return _REMEDIES.get(error.errno or 0, "")


def refusal_of(error: BaseException) -> Refusal | None:
    """Returns an error as one that the user can correct; None for a mistake of the program.

    What the system refuses, such as a file or a connection, has a number, which an error of ours
    has not.
    """
    error = as_system_error(error) or error
    if isinstance(error, MemoryError):
        return Refusal(UserError("out of memory: free some, or take a smaller suite"), True)
    if isinstance(error, UserError):
        # Room can be made: the same command may do better then.
        beneath = error.__context__
        full = isinstance(beneath, OSError) and beneath.errno in _UNWRITABLE
        return Refusal(error, error.passing or full or may_pass(error))
    if not isinstance(error, OSError) or error.errno is None:
        return None
    if error.errno in _UNWRITABLE:
        advice = "make room, or name a place that can be written"
        return Refusal(UserError(f"cannot write: {error}; {advice}"), True)
    place = type(error).__name__ if error.filename is None else str(error.filename)
    said = f"{place}: {error.strerror or error}"
    return Refusal(UserError("; ".join(filter(None, [said, remedy_of(error)]))), may_pass(error))
