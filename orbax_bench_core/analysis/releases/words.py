"""Sentences of a search over releases, the same in the terminal and on the page."""

from __future__ import annotations

from typing import Final

from orbax_bench_core.analysis.releases.model import OperationRatio, Purpose, ReleaseSearch

HEADINGS: Final = ("step", "release", "against", "for", "verdict", "ratio", "interval", "in words")

READING: Final = """\
Each comparison runs both releases in turns, in blocks of random order, each in an environment of \
its own; the ratio is the time with the newer one over that with the older one: above 1 is slower.
The search first compares the ends, then halves what lies between them, each release against the \
good one. A release that it stops at is compared with its direct predecessor before it is named: \
only a REGRESSION there names it. When it passes, it becomes the good release, and the rest is \
searched.
A range without a name says: at its older end the operation had not regressed, by its newer end it \
had, and the verdicts do not say in which release."""
"""Reading aid of a search, one line each."""

_PURPOSES: Final[dict[Purpose, str]] = {
    "ends": "both ends",
    "search": "halving",
    "confirm": "confirmation",
}


def answer(search: ReleaseSearch) -> str:
    """Returns the answer of a search in a sentence or two."""
    package, operations = search.package, " and ".join(search.operations)
    first, last = search.releases[0], search.releases[-1]
    why = search.steps[0].why
    if search.conclusion == "named":
        return (
            f"{package} {search.first_bad} is the first release in which {operations} regressed; "
            f"{search.last_good} is the last good one. Compared with each other, the two regressed."
        )
    if search.conclusion == "range":
        return (
            f"{operations} regressed between {package} {search.last_good} and {search.first_bad}; "
            f"no single release can be named: {_open(search)}."
        )
    if search.conclusion == "same":
        return (
            f"{package} {last} shows no regression against {first}, so there is nothing to search "
            f"for. {why}"
        )
    if search.conclusion == "undecided":
        return f"There is no clear verdict on {package} {last} against {first}, so no search. {why}"
    return f"{package} {last} could not be compared with {first}: {why}"


def purpose(purpose: Purpose) -> str:
    """Returns the reason of a comparison, for people."""
    return _PURPOSES[purpose]


def ratio(found: OperationRatio) -> str:
    """Returns a ratio with its operation."""
    return f"{found.operation} {found.ratio:.3f}x"


def interval(found: OperationRatio) -> str:
    """Returns the interval of a ratio."""
    if found.low is None or found.high is None:
        return "–"
    return f"[{found.low:.3f}, {found.high:.3f}]"


def _open(search: ReleaseSearch) -> str:
    """Returns what keeps a range from being a name."""
    if search.undecided:
        return f"there is no verdict on {', '.join(search.undecided)}"
    last = next(step for step in reversed(search.steps) if step.purpose == "confirm")
    if last.outcome == "PASS":
        return (
            f"{last.release} passes against its predecessor {last.against}, so the slow-down came "
            "in smaller steps"
        )
    return f"{last.release} against its predecessor {last.against} gave no verdict"
