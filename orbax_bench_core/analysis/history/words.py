"""Numbers and sentences of a history, the same in the terminal and on the page."""

import dataclasses
import datetime
import itertools
import json
import re
import shlex
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core.analysis.history.model import Change, History, Kind, PastRun, PastSeries
from orbax_bench_core.analysis.verdicts import interval, ratio
from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.document import percent, seconds
from orbax_bench_core.provenance import UNKNOWN

HEADINGS: Final = ("from", "to", "runs", "ratio", "change", "flagged", "changed with")
RUN_HEADINGS: Final[Mapping[Kind, Sequence[str]]] = {
    "ratio": ("run", "began", "blocks", "ratio", "95 % interval", "code under test", "what ran"),
    "seconds": ("run", "began", "n", "median", "spread", "code under test", "what ran"),
}

READING: Final = """\
The ratio is the time of the candidate over that of the reference arm in the same run: above 1 is \
slower. Whatever slows the machine slows both arms, so the ratio holds still while seconds wander.
A flag is a question: has the ratio moved here, and stayed? It is raised after the run named under \
"flagged", and is not withdrawn; what comes after the change is a series of its own. The answer is \
a paired comparison of the releases on both sides, and only its REGRESSION is an alarm. Where both \
sides can be installed again, the command for it stands beside the flag.
Failures and stalls are added up over the runs, for one run cannot show that one save in twenty \
fails. Where nothing differs, a series is named for them once in {nights:,} runs at most.
When nothing has changed, a flag is raised within 60 runs in {significance} of series whose flags \
can be asked about, and in {significance} of cases anywhere among all the others together. Where \
successive nights depend on each other that is more, but about one a year and series at most.
The versions and commits beside a flag are what differs between the last run before it and the \
first run after it, or, where those ran the same, between the nearest that did not."""
"""Reading aid of a history, one line each."""

_BARS: Final = "▁▂▃▄▅▆▇█"
_MOST_BARS: Final = 60
_MOST_REVISIONS: Final = 10
"""Revisions that a terminal names; the page has that of every night."""
_NOTHING: Final = "nothing that is recorded differs"
_FACTS: Final = {"orbax-checkpoint": "orbax", "commit": "commit", "environment": "environment"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """The runs between two changes, as cells with the columns of `HEADINGS`."""

    cells: tuple[str, ...]
    slower: bool
    change: Change | None


def shown(history: History, *, every: bool) -> list[PastSeries]:
    """Returns the series to show: those that changed first, then the others.

    With `every`, operations that decide no verdict are among them.
    """
    chosen = [series for series in history.series if every or series.primary]
    return sorted(chosen or history.series, key=lambda series: not series.changes)


def headline(history: History, series: Sequence[PastSeries]) -> str:
    """Returns the result of a history in a sentence or two; `series` are those that are shown."""
    ratios = [each for each in series if each.kind == "ratio"]
    said = f"{history.num_runs} run{'' if history.num_runs == 1 else 's'}, {len(series)} series."
    worse = sum(bool(each.excesses) for each in series)
    if worse:
        said += f" In {worse} the candidate fails or stalls more often than its baseline."
    if not ratios:
        return f"{said} None is a ratio to a reference arm, so no change can be told."
    changes = [(change, each) for each in ratios for change in each.changes]
    if not changes:
        return f"{said} No flag in {len(ratios)} ratios to a reference arm."
    changed = sum(bool(each.changes) for each in ratios)
    worst, slowed = max(changes, key=lambda change: change[0].effect)
    return (
        f"{said} {changed} of {len(ratios)} ratios to a reference arm are flagged, to be confirmed "
        f"by a paired comparison; the worst: {slowed.operation} {effect(worst)} on "
        f"{day(slowed.runs[worst.index].began_at)}."
    )


def excesses(series: PastSeries) -> Iterator[str]:
    """Yields how often the candidate fails or stalls over many runs, the latest finding of each."""
    for each in {each.kind: each for each in series.excesses}.values():
        # A failure is one of the whole point.
        failed = each.kind == "failures"
        where = series.point if failed else f"{series.operation} of {series.point}"
        what = "first attempts failed" if failed else "operations stalled"
        begun, found = (day(series.runs[place].began_at) for place in (each.first, each.last))
        yield (
            f"{where}: {each.candidate} of {each.operations} {what} with the candidate and "
            f"{each.baseline} with the baseline, from {begun} to {found}"
        )


def rows(series: PastSeries) -> list[TrendRow]:
    """Returns the parts of a series of ratios between its changes."""
    changes: list[Change | None] = [None, *series.changes]
    found = []
    for part, change in zip(series.parts, changes, strict=True):
        cells = (
            day(part[0].began_at),
            day(part[-1].began_at),
            str(len(part)),
            f"{statistics.median(run.value for run in part):.3f}x",
            "" if change is None else effect(change),
            "" if change is None else day(series.runs[change.flagged].began_at),
            "" if change is None else "; ".join(change.differs) or _NOTHING,
        )
        found.append(
            TrendRow(cells=cells, slower=change is not None and change.effect > 0, change=change)
        )
    return found


def run_row(series: PastSeries, run: PastRun) -> tuple[str, ...]:
    """Returns one run as cells with the columns of `RUN_HEADINGS` of its kind."""
    return (
        run.run_id,
        f"{run.began_at:%Y-%m-%d %H:%M}",
        str(run.n),
        value_of(series, run),
        around(series, run),
        run.code,
        what_ran(run),
    )


def value_of(series: PastSeries, run: PastRun) -> str:
    """Returns the ratio of a run as its verdict has it, or its median seconds."""
    if series.kind == "seconds":
        return seconds(run.value)
    return f"{ratio(run.value)}{' (median of blocks)' if run.by_blocks else ''}"


def around(series: PastSeries, run: PastRun) -> str:
    """Returns the interval of the ratio of a run, or how far its seconds are spread."""
    if series.kind == "ratio":
        return interval(run)
    if run.low is None or run.high is None:
        return "–"
    return percent((run.high - run.low) / run.value)


def what_ran(run: PastRun) -> str:
    """Returns the version of Orbax, our own commit and the environment of a run."""
    return _known({name: run.ran.get(key, UNKNOWN) for key, name in _FACTS.items()})


def release_and_code(run: PastRun) -> str:
    """Returns the version of Orbax, the code under test and the environment of a run.

    Where the code is not known, our own commit stands for it.
    """
    if run.code.startswith(UNKNOWN):
        return what_ran(run)
    facts = {name: run.ran.get(key, UNKNOWN) for key, name in _FACTS.items()}
    return _known({"orbax": facts["orbax"], "code": run.code, "environment": facts["environment"]})


def tested(run: PastRun) -> str:
    """Returns the version of Orbax, the environment and, known or not, the code under test."""
    facts = {name: run.ran.get(key, UNKNOWN) for key, name in _FACTS.items()}
    known = _known({"orbax": facts["orbax"], "environment": facts["environment"]})
    return ", ".join(filter(None, [known, f"code {run.code}"]))


def _known(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {fact}" for name, fact in facts.items() if fact != UNKNOWN)


def revisions(series: PastSeries) -> str:
    """Returns which revision each night measured, nights in a row with one revision together."""
    said = []
    for revision, nights in itertools.groupby(series.runs, key=lambda run: run.code):
        days = [day(run.began_at) for run in nights]
        until = f" to {days[-1]}" if days[-1] != days[0] else ""
        said.append(f"{revision} ({days[0]}{until})")
    earlier = f"{len(said) - _MOST_REVISIONS} earlier ones; " if len(said) > _MOST_REVISIONS else ""
    return f"code under test: {earlier}{', '.join(said[-_MOST_REVISIONS:])}"


def effect(change: Change) -> str:
    """Returns by how much a series has changed, such as `+20 % (slower)`."""
    word = "slower" if change.effect > 0 else "faster"
    return f"{100 * change.effect:+.3g} % ({word})"


def between(series: PastSeries, change: Change) -> str:
    """Returns between which runs a change lies."""
    before, after = series.runs[change.index - 1], series.runs[change.index]
    return f"between run {before.run_id} and run {after.run_id}"


def asking(change: Change) -> str:
    """Returns how a flag is confirmed."""
    if change.question:
        return f"ask: {change.question}"
    return "a side of it cannot be installed again by itself: compare both sides with `ab`"


def sides(series: PastSeries) -> str:
    """Returns the two sides of a ratio, for people."""
    if series.kind == "seconds":
        return "seconds, in which no changes are looked for: see the note below"
    names = {"candidate": series.candidate, "baseline": series.baseline}
    candidate, baseline = (f"{arm} ({name})" if name else arm for arm, name in names.items())
    return f"{candidate} over {baseline}"


def remarks(series: Iterable[PastSeries]) -> dict[str, int]:
    """Returns what else there is to know, each once with the number of series it is about."""
    found: dict[str, int] = {}
    for each in series:
        for remark in each.remarks:
            found[remark] = found.get(remark, 0) + 1
    return found


def sparkline(series: PastSeries) -> str:
    """Returns the values of the last runs as bars, from the smallest to the largest."""
    values = [run.value for run in series.runs[-_MOST_BARS:]]
    low, high = min(values), max(values)
    if high == low:
        return _BARS[0] * len(values)
    top = len(_BARS) - 1
    return "".join(_BARS[round(top * (value - low) / (high - low))] for value in values)


def day(moment: datetime.datetime) -> str:
    """Returns a date."""
    return f"{moment:%Y-%m-%d}"


_RELEASE: Final = re.compile(r"^\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?$")
_INSTALLED: Final = ("orbax-checkpoint", "tensorstore", "jax", "jaxlib", "numpy", "torch")
"""Packages of a record that an environment can be asked to have, jaxlib along with jax."""


def question(
    before: PastRun,
    after: PastRun,
    environments: tuple[EnvironmentConfig | None, EnvironmentConfig | None],
    suite: str,
) -> str:
    """Returns the command that compares both sides of a change, or nothing where none can.

    Releases of one package in order are searched by `orbax-bench bisect`; any other two sides that
    can be installed again are compared by `orbax-bench ab`.
    """
    was, now = (
        _requirements(run, environment)
        for run, environment in zip((before, after), environments, strict=True)
    )
    lost = [each for each in was if each not in now]
    new = [each for each in now if each not in was]
    if not lost or not new:
        return ""
    suite = suite or "SUITE.yaml"
    folder = f"asked/{before.run_id}_{after.run_id}"
    head = ["orbax-bench", "bisect", suite, "-o", folder]
    if len(lost) == len(new) == 1 and after.value > before.value:
        (old, good), (package, bad) = _release(lost[0]), _release(new[0])
        if old == package and package and _older(good, bad):
            also = [each for each in now if each in was]
            extra = [word for each in also for word in ("--with", each)]
            return shlex.join([*head, "--package", package, "--good", good, "--bad", bad, *extra])
    made = [
        {"name": "before", "requirements": list(was)},
        {"name": "after", "requirements": list(now)},
    ]
    arms = {"baseline": {"environment": "before"}, "candidate": {"environment": "after"}}
    overrides = (f"environments={json.dumps(made)}", f"arms={json.dumps(arms)}")
    words = [word for override in overrides for word in ("--override", override)]
    return shlex.join(["orbax-bench", "ab", suite, "-o", folder, *words])


def _requirements(run: PastRun, environment: EnvironmentConfig | None) -> Sequence[str]:
    """Returns what to install for a side; nothing where that is not known."""
    if environment is not None:
        return environment.requirements
    versions = {name: run.ran.get(name, UNKNOWN) for name in _INSTALLED}
    if "jax" in run.ran:
        versions.pop("jaxlib")
    return [f"{name}=={each}" for name, each in versions.items() if _RELEASE.match(each)]


def _release(requirement: str) -> tuple[str, str]:
    """Returns package and version of `package==version`; nothing for what is no release."""
    package, _, version = requirement.partition("==")
    return (package.strip(), version) if _RELEASE.match(version) else ("", "")


def _older(good: str, bad: str) -> bool:
    from packaging.version import Version

    return Version(good) < Version(bad)
