"""User errors: mistakes that the user can correct, with their place and remedy."""

import dataclasses
import math
import shlex
from typing import TYPE_CHECKING

from orbax_bench_core.errors.text import LONGEST_MESSAGE, on_a_screen, one_line, presentable, shown

if TYPE_CHECKING:
    import pydantic
import difflib
from collections.abc import Iterable
from typing import Final


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong."""

    message: str  # what was given, what is allowed, what to do
    key: str = ""  # dotted path of the key at fault; empty for the file as a whole
    file: str = ""  # the file it is in; empty when the suite did not come from a file
    line: int | None = None  # 1-based line in that file; None if there is none to name

    def __str__(self) -> str:
        lines = "" if self.line is None else f":{self.line}" if self.file else f"line {self.line}"
        place = f"{self.file}{lines}"
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


def check_amounts(**amounts: float) -> None:
    """Checks amounts by name, before anything is measured that they would be taken from.

    Raises:
        UserError: One is negative, infinite or not a number.
    """
    for name, amount in amounts.items():
        if not 0 <= amount < math.inf:
            raise UserError(f"{name}: expected a number of 0 or more, got {shown(amount)}")


def first_fault(error: "pydantic.ValidationError") -> str:
    """Returns the first mistake in data, after the dotted path of its key if it has one."""
    first = error.errors()[0]
    return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))


def command(*words: object) -> str:
    """Returns a command line of `orbax-bench` as a shell takes it, spaces included."""
    return shlex.join(["orbax-bench", *map(str, words)])


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
