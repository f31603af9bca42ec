"""Search over releases for people: its answer, the ratio by release, and its steps."""

import shlex
from collections.abc import Container
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.releases.model import Purpose, ReleaseSearch, SearchStep
from orbax_bench_core.analysis.verdicts import why
from orbax_bench_core.errors import command
from orbax_bench_core.exit_codes import WORDS

READING: Final = """\
Each comparison runs both releases in turns, in blocks of random order, each in an environment of \
its own. The ratio is the time with the newer one over that with the older one: above 1 is \
slower.
The search first compares the ends, then halves what lies between them, each release against the \
good one. A release that it stops at is compared with its direct predecessor before it is named: \
only a REGRESSION there names it. When it passes, it becomes the good release, and the rest is \
searched.
A range without a name says: at its older end the operation had not regressed, by its newer end \
it had, and the verdicts do not say in which release."""
"""Reading aid, one line each."""
_PURPOSES: Final[dict[Purpose, str]] = {
    "ends": "both ends",
    "search": "halving",
    "confirm": "confirmation",
}
_MOST_LABELS: Final = 10
_APART: Final = 0.12
"""Distance of the marks of one release, releases being 1 apart."""


def headline(search: ReleaseSearch) -> pages.Callout:
    """Returns the answer of a search, in a sentence."""
    package, operations = search.package, search.operations
    regressed = f"{' and '.join(operations)} regressed"
    first, last = search.releases[0], search.releases[-1]
    if search.conclusion == "named":
        said = (
            f"{package} {search.first_bad} is the first release in which {regressed}, "
            f"{search.last_good} the last good one: {_changes(search.steps[-1], operations)}"
        )
    elif search.conclusion == "range":
        said = (
            f"{regressed} between {package} {search.last_good} and {search.first_bad} "
            f"({_changes(search.steps[0], operations)}); no single release can be named: "
            f"{_open(search)}"
        )
    elif search.conclusion == "same":
        said = (
            f"{package} {last} shows no regression against {first}, so there is nothing to search "
            f"for: {_told(search.steps[0])}"
        )
    elif search.conclusion == "undecided":
        said = (
            f"there is no clear verdict on {package} {last} against {first}, so no search: "
            f"{_told(search.steps[0])}"
        )
    else:
        said = f"{package} {last} could not be compared with {first}: {why(search.steps[0].reason)}"
    word = search.outcome.word or "FAILED"
    return pages.Callout(word, said, WORDS[word].role)


def _told(step: SearchStep) -> str:
    changes = _changes(step, [each.operation for each in step.ratios])
    return "; ".join(filter(None, (changes, why(step.reason))))


def _changes(step: SearchStep, operations: Container[str]) -> str:
    return ", ".join(
        f"{each.operation} {pages.change(each.ratio, each.low, each.high)}"
        for each in step.ratios
        if each.operation in operations
    )


def _open(search: ReleaseSearch) -> str:
    """Returns the reason why a range is not a name."""
    if search.undecided:
        return f"there is no verdict on {', '.join(search.undecided)}"
    last = next(step for step in reversed(search.steps) if step.purpose == "confirm")
    if last.outcome == "PASS":
        return (
            f"{last.release} passes against its predecessor {last.against}, so the slow-down came "
            "in smaller steps"
        )
    return f"{last.release} against its predecessor {last.against} gave no verdict"


def search_document(search: ReleaseSearch, place: str) -> pages.Document:
    """Returns a search for people; `place` is the folder with the runs of its comparisons."""
    operations = dict.fromkeys(found.operation for step in search.steps for found in step.ratios)
    charts = tuple(_ratios(search, operation) for operation in operations)
    return pages.Document(
        about=f"Search over {len(search.releases)} releases of {search.package}, "
        f"{pages.count(len(search.steps), 'comparison')}",
        headline=headline(search),
        summary=charts[:1],
        following=_following(search, place),
        details=(
            pages.Section("Steps", (_steps(search, operations),)),
            pages.Details("Other operations", charts[1:]),
            pages.Details("Releases", (pages.Text(", ".join(search.releases)),)),
            pages.Details("How to read this", (pages.Text(items=tuple(READING.splitlines())),)),
        ),
    )


def _following(search: ReleaseSearch, place: str) -> pages.Code | None:
    if search.first_bad is not None:
        pinned = shlex.join(("pip", "install", f"{search.package}=={search.last_good}"))
        return pages.Code(pinned, "Until that is fixed, stay with the last good release:")
    if search.conclusion == "same":
        return None
    ends = f"{place}/{search.steps[0].folder}"
    return pages.Code(command("report", ends), "What each comparison measured is in its report.")


def _ratios(search: ReleaseSearch, operation: str) -> pages.Chart:
    """Returns the ratios of one operation, each at the newer release of its comparison.

    They are filled against the good release, hollow against others.
    """
    marks, every, said = list[pages.Mark](), [1.0], list[str]()
    seen: dict[str, int] = {}
    for step in search.steps:
        for found in step.ratios:
            if found.operation != operation:
                continue
            low, high = found.low or found.ratio, found.high or found.ratio
            x = search.releases.index(step.release) + _APART * seen.get(step.release, 0)
            seen[step.release] = seen.get(step.release, 0) + 1
            role, hollow = WORDS[step.outcome].role, step.against != search.releases[0]
            marks += [
                pages.Mark("whisker", ((x, low), (x, high)), role),
                pages.Mark("dots", ((x, found.ratio),), role, step.outcome, hollow=hollow),
            ]
            every += [low, found.ratio, high]
            changed = pages.change(found.ratio, found.low, found.high)
            said.append(f"{step.release} against {step.against} {changed}, {step.outcome}")
    ends = (min(every) / 1.05, max(every) * 1.05)
    stride = -(-len(search.releases) // _MOST_LABELS)
    names = ["" if at % stride else name for at, name in enumerate(search.releases)]
    releases = pages.named_axis(names, f"release; hollow: not against {search.releases[0]}")
    sides = (releases.scale.low, releases.scale.high)
    marks.insert(0, pages.Mark("line", tuple((x, 1.0) for x in sides), "dim", "no change"))
    if search.conclusion == "named" and search.first_bad is not None:
        x = search.releases.index(search.first_bad) - 0.5
        marks.insert(0, pages.Mark("line", tuple((x, y) for y in ends), "bad", dashed=True))
    y = pages.axis("", *ends, lambda value: f"{pages.digits(value)}x", log=True)
    title = f"{operation}: time with the newer release over that with the older one"
    return pages.Chart(title, "; ".join(said), releases, y, tuple(marks))


def _steps(search: ReleaseSearch, operations: Container[str]) -> pages.Table:
    rows = [
        pages.Row(
            (
                str(number),
                step.release,
                step.against,
                _PURPOSES[step.purpose],
                pages.Cell(step.outcome, WORDS[step.outcome].role, f"{step.folder}/verdicts.html"),
                ", ".join(f"{each.operation} {each.ratio:.3f}x" for each in step.ratios),
                _changes(step, operations),
                why(step.reason),
            )
        )
        for number, step in enumerate(search.steps, start=1)
    ]
    names = ("release", "against", "for", "verdict", "ratio", "change")
    columns = pages.columns("step#", *names, "why~")
    return pages.Table(columns, tuple(rows))
