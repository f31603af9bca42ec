"""Search over releases, as it is kept and read: its steps, its answer, and the ratio by release."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, Literal

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.intervals import between
from orbax_bench_core.analysis.verdicts import ratio_axis, ratio_limits
from orbax_bench_core.document import figures
from orbax_bench_core.exit_codes import Ending
from orbax_bench_core.files import ResultModel
from orbax_bench_core.gate import Word

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

ReleaseWord = Word | Literal["FAILED"]
"""Verdict of a comparison of two releases; FAILED when one could not be measured."""

Purpose = Literal["ends", "search", "confirm"]
"""Reason of a comparison: the bad release against the good one, a release in between against the
good one, or the first bad release against its direct predecessor."""

Conclusion = Literal["named", "range", "same", "undecided", "failed"]
"""Answer of a search: one release, a range of them, ends that do not differ, ends without a clear
verdict, or ends that could not be measured."""

_OUTCOMES: Final = {
    "named": Ending(word="REGRESSION"),
    "range": Ending(word="REGRESSION"),
    "same": Ending(word="PASS"),
    "undecided": Ending(word="INCONCLUSIVE"),
    "failed": Ending(incomplete=True),
}


class OperationRatio(ResultModel):
    """Ratio of one operation between two releases."""

    operation: str
    ratio: float  # newer over older, so that above 1 is slower
    low: float | None = None  # lower end of its interval; None without one
    high: float | None = None  # upper end of it


class SearchStep(ResultModel):
    """One comparison of a search."""

    release: str  # the newer release
    against: str  # the older one
    purpose: Purpose  # what it was for
    outcome: ReleaseWord  # what it gave
    why: str = ""  # the verdict in a sentence, or why there is none
    # of the primary operations; of several points the worst
    ratios: tuple[OperationRatio, ...] = ()
    folder: str = ""  # run directory of the comparison


class ReleaseSearch(ResultModel):
    """Result of a search over releases."""

    package: str
    releases: tuple[str, ...]  # every release of the search, in order of version
    conclusion: Conclusion  # kind of the answer
    # the direct predecessor of a named release, the older end of a range, or the good release
    last_good: str
    first_bad: str | None  # A named release, or the newer end of a range; None without a regression
    undecided: tuple[str, ...] = ()  # releases inside a range that gave no verdict
    operations: tuple[str, ...] = ()  # the operations that regressed between the ends
    steps: tuple[SearchStep, ...]  # every comparison, in the order in which it was made

    @property
    def outcome(self) -> Ending:
        """What an exit code is made of."""
        return _OUTCOMES[self.conclusion]


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


def _interval(found: OperationRatio) -> str:
    return between(found.low, found.high, "{:.3f}".format)


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


_WIDTH: Final = 9.6
_HEIGHT: Final = 3.2
_LEAST: Final = 0.05
_MOST_LABELS: Final = 14
_APART: Final = 0.12
"""Distance of the markers of one release, releases being 1 apart."""


def ratio_figure(search: ReleaseSearch, operation: str) -> Drawing:
    """Returns the ratios of one operation, each at the newer release of its comparison.

    They are filled against the good release, hollow against others.
    """
    figure = figures.new_figure(_WIDTH, _HEIGHT)
    axes = figure.subplots()
    colours = {"REGRESSION": figures.REGRESSION, "PASS": figures.PASS}
    every = [1.0]
    seen: dict[str, int] = {}
    for step in search.steps:
        for found in step.ratios:
            if found.operation != operation:
                continue
            low, high = found.low or found.ratio, found.high or found.ratio
            place = search.releases.index(step.release) + _APART * seen.get(step.release, 0)
            seen[step.release] = seen.get(step.release, 0) + 1
            colour = colours.get(step.outcome, figures.INCONCLUSIVE)
            against_first = step.against == search.releases[0]
            axes.errorbar(
                [place],
                [found.ratio],
                yerr=[[max(found.ratio - low, 0)], [max(high - found.ratio, 0)]],
                fmt="o" if against_first else "D",
                color=colour,
                markerfacecolor=colour if against_first else figures.PAGE,
                elinewidth=1.4,
            )
            every += [low, found.ratio, high]
    axes.axhline(1, color=figures.DIM, linewidth=1)
    if search.conclusion == "named" and search.first_bad is not None:
        place = search.releases.index(search.first_bad) - 0.5
        axes.axvline(place, color=figures.REGRESSION, linewidth=1.2, linestyle=(0, (4, 3)))
    limits = ratio_limits(every, _LEAST)
    axes.set_yscale("log")
    axes.set_ylim(*limits)
    ratio_axis(axes.yaxis, *limits)
    axes.set_ylabel("newer / older release")
    axes.set_xlim(-0.5, len(search.releases) - 0.3)
    stride = -(-len(search.releases) // _MOST_LABELS)
    axes.set_xticks(range(0, len(search.releases), stride), search.releases[::stride])
    return figure


def search_document(search: ReleaseSearch) -> doc.Document:
    """Returns a search for people; a terminal has seen its steps, and is told the answer."""
    said = doc.Paragraph(doc.Span(answer(search), strong=True))
    operations = dict.fromkeys(found.operation for step in search.steps for found in step.ratios)
    drawn = (
        doc.Figure(
            f"Ratio of {operation} by release: filled against {search.releases[0]}, hollow against "
            "another",
            functools.partial(ratio_figure, search, operation),
            file=f"{index}.png",
        )
        for index, operation in enumerate(operations)
    )
    elements: tuple[doc.Element, ...] = (
        doc.Heading(f"Search over {len(search.releases)} releases of {search.package}", level=1),
        said,
        *drawn,
        doc.Heading("Steps"),
        _steps(search),
        doc.Section("How to read this", (doc.Items(tuple(READING.splitlines())),)),
    )
    return doc.Document(title=f"Releases of {search.package}", elements=elements, brief=(said,))


def _steps(search: ReleaseSearch) -> doc.Table:
    rows = [
        doc.Row(
            (
                str(number),
                doc.Span(step.release),
                doc.Span(step.against),
                _PURPOSES[step.purpose],
                doc.Span.judged(step.outcome),
                doc.Span(", ".join(f"{each.operation} {each.ratio:.3f}x" for each in step.ratios)),
                doc.Span(", ".join(map(_interval, step.ratios))),
                doc.Span(step.why),
            )
        )
        for number, step in enumerate(search.steps, start=1)
    ]
    kinds = {"step": "number", "for": "fixed", "verdict": "fixed", "in words": "prose"}
    columns = tuple(doc.Column(heading, kinds.get(heading, "text")) for heading in HEADINGS)  # type: ignore[arg-type]
    return doc.Table(columns, tuple(rows))
