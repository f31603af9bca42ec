"""Outcomes, and the exit code of each: one table for every command."""

import dataclasses
import enum
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, Self


class Exit(enum.IntEnum):
    """Code that a command ends with."""

    OK = 0
    FAILED = 1
    INVALID = 2
    REGRESSION = 3
    INCONCLUSIVE = 4
    LOST_HEAD = 75
    INTERRUPTED = 130
    PIPE_CLOSED = 141


class Word(NamedTuple):
    """What a word means, by which an answer or a run says how it is."""

    role: Literal["bad", "unsure", "plain", "good"]  # what it asks of a person: bad needs one
    code: Exit | None = None  # exit code of a verdict; None if the word decides nothing


MEANINGS: Final[dict[Exit, tuple[str, str]]] = {
    Exit.OK: ("done, and PASS where there is a verdict", "go on"),
    Exit.FAILED: (
        "something failed or was left out, or nothing was measured, such as skipped points",
        "retry",
    ),
    Exit.INVALID: ("the input is wrong", "stop: it would fail again"),
    Exit.REGRESSION: ("REGRESSION", "stop"),
    Exit.INCONCLUSIVE: (
        "INCONCLUSIVE and not allowed, or exploratory: by rules chosen after the data",
        "as the team has decided",
    ),
    Exit.LOST_HEAD: ("an agent lost process 0 of its run", "retry, on all hosts"),
    Exit.INTERRUPTED: ("interrupted", "run the same command again: it continues"),
    Exit.PIPE_CLOSED: (
        "what read its output ended before it, as head does",
        "run the same command again: it continues",
    ),
}
"""Meaning of each code, and what an engine should do."""

RETRIED: Final = (Exit.FAILED, Exit.LOST_HEAD)
"""Codes after which the same command may do better: engines retry these, and no other."""

WORDS: Final[dict[str, Word]] = {
    "REGRESSION": Word("bad", Exit.REGRESSION),
    "LEAK": Word("bad", Exit.REGRESSION),
    "FAILED": Word("bad"),
    "not back": Word("bad"),
    "failed": Word("bad"),
    "incomplete": Word("bad"),
    "NO REPORT": Word("bad"),
    "INCONCLUSIVE": Word("unsure", Exit.INCONCLUSIVE),
    "not judged": Word("unsure"),
    "running": Word("plain"),
    "COMPARED": Word("plain"),
    "complete": Word("plain"),
    "ACCEPTED": Word("plain"),
    "PASS": Word("good", Exit.OK),
}
"""All words of answers, runs and suites, the most urgent first; a new word is a row here."""

VERDICTS: Final = tuple(word for word, means in WORDS.items() if means.code is not None)
"""Words of a verdict, which `enforce-verdict` takes."""
REGRESSED: Final = tuple(word for word in VERDICTS if WORDS[word].code == Exit.REGRESSION)
"""Those that say that something is worse than it may be."""

_RANKED: Final = (
    Exit.INTERRUPTED,
    Exit.PIPE_CLOSED,
    Exit.INVALID,
    Exit.REGRESSION,
    Exit.FAILED,
    Exit.LOST_HEAD,
    Exit.INCONCLUSIVE,
)


State = Literal["REGRESSION", "FAILED", "INCONCLUSIVE", "ACCEPTED", "PASS"]
"""State of a suite, as a webhook and an engine are told.

INCONCLUSIVE says nothing new, and a REGRESSION that is ACCEPTED is not told.
"""

CODES: Final[dict[State, Exit]] = {
    "REGRESSION": Exit.REGRESSION,
    "FAILED": Exit.FAILED,
    "INCONCLUSIVE": Exit.INCONCLUSIVE,
    "ACCEPTED": Exit.OK,
    "PASS": Exit.OK,
}
"""Exit code of each state, the worst first."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended, or what one answer about it found: what every medium tells of it."""

    word: str = ""  # of `WORDS`: the verdict, or how far it came where there is none; or empty
    incomplete: bool = False  # whether something failed or was left out, or nothing was measured
    exploratory: bool = False  # whether it was judged by rules that were changed after the data
    # whether both sides were measured apart, so that the word decides nothing
    only_warns: bool = False
    lacks_operations: bool = False  # whether an arm lacks an operation, which is never tolerated
    accepted: bool = False  # whether a person knows the regression, and accepts it

    def __post_init__(self) -> None:
        # Every medium looks a word up: one that is in no row would end the morning page.
        assert self.word in ("", *WORDS), f"{self.word} is no row of WORDS"

    @property
    def state(self) -> State:
        """The state in which it leaves its suite: what warns only is told by its word as well."""
        if exit_code(self) == Exit.FAILED:
            return "FAILED"
        said = "REGRESSION" if self.word in REGRESSED else self.word
        if said == "REGRESSION" and self.accepted:
            return "ACCEPTED"
        return next((state for state in CODES if state == said), "PASS")

    def lacking(self, lacks: object) -> Self:
        """Returns this outcome, incomplete too if `lacks` is true or names something."""
        return dataclasses.replace(self, incomplete=self.incomplete or bool(lacks))

    def in_order(self, found: Iterable[str], lacking: Sequence[str]) -> tuple[str, ...]:
        """Returns the reasons of a state: what was found, after what is lacking if that decided."""
        is_lost = self.lacking(lacking).state != self.state
        return (*lacking, *found) if is_lost else (*found, *lacking)


def exit_code(*found: Outcome, incomplete: bool = False, allow_inconclusive: bool = False) -> int:
    """Returns the exit code of what was found, by every command and step."""
    codes = {Exit.FAILED} if incomplete else set()
    for one in found:
        if one.incomplete:
            codes.add(Exit.FAILED)
        if one.only_warns:
            continue
        tolerated = allow_inconclusive and not one.lacks_operations
        if one.exploratory or (one.word == "INCONCLUSIVE" and not tolerated):
            codes.add(Exit.INCONCLUSIVE)
        elif one.word in REGRESSED and not one.accepted:
            codes.add(Exit.REGRESSION)
    return worst(codes)


def worst(codes: Iterable[int]) -> int:
    """Returns the code of a command that did several things.

    A regression goes before a failure, which goes before what is inconclusive: a reader of one
    number must not miss the verdict.
    """
    found = set(codes)
    return next((int(code) for code in _RANKED if code in found), int(Exit.OK))
