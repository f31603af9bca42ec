"""Numbers and sentences of a history, the same in the terminal and on the page."""

import datetime
import itertools
import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core.analysis.history.model import Change, History, PastRun, PastSeries
from orbax_bench_core.analysis.names import heading
from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.pages import percent, seconds, share
from orbax_bench_core.provenance import UNKNOWN

READING: Final = """\
The ratio is the time of the candidate over that of the reference arm in the same run: above 1 is \
slower. Whatever slows the machine slows both arms, so the ratio stays stable while seconds vary.
A flag is a question: has the ratio moved here, and stayed? It is raised after the run named under \
"flagged", and is not withdrawn; what comes after the change is a series of its own. The answer is \
a paired comparison of the releases on both sides, and only its REGRESSION is an alarm. Where both \
sides can be installed again, the command for it stands next to the flag.
Failures and stalls are added up over the runs, for one run cannot show that one save in twenty \
fails. Where nothing differs, a series is named for them once in {nights:,} runs at most.
When nothing has changed, a flag is raised within 60 runs in {significance} of series whose flags \
can be asked about, and in {significance} of cases anywhere among all the others together. Where \
successive nights depend on each other that is more, but about one a year and series at most.
The versions and commits next to a flag are what differs between the last run before it and the \
first run after it, or, where those ran the same, between the nearest that did not."""
"""Reading aid of a history, one line each."""

_BARS: Final = "▁▂▃▄▅▆▇█"
_MOST_BARS: Final = 20
_FLAT: Final = 1.15
"""Largest value over the smallest up to which bars are low: what no verdict would call slower."""
_FACTS: Final = {"orbax-checkpoint": "orbax", "commit": "commit", "environment": "environment"}


def shown(history: History, *, every: bool) -> list[PastSeries]:
    """Returns the series to show: those that changed first, and those of one run last.

    With `every`, operations that decide no verdict are among them.
    """
    chosen = [series for series in history.series if every or series.primary]
    return sorted(
        chosen or history.series, key=lambda series: (not series.changes, len(series.runs) < 2)
    )


def excesses(series: PastSeries) -> Iterator[str]:
    """Yields how often the candidate fails or stalls over many runs, the latest finding of each."""
    for each in {each.kind: each for each in series.excesses}.values():
        # A failure is one of the whole point.
        failed = each.kind == "failures"
        where = series.point if failed else f"{heading(series.operation)} of {series.point}"
        what = "first attempts failed" if failed else "operations stalled"
        begun, found = (day(series.runs[place].began_at) for place in (each.first, each.last))
        yield (
            f"{where}: {each.candidate} of {each.operations} {what} with the candidate and "
            f"{each.baseline} with the baseline, from {begun} to {found}"
        )


def level(series: PastSeries, value: float) -> str:
    """Returns a ratio, or seconds, as the series has them."""
    return seconds(value) if series.kind == "seconds" else f"{value:.3f}x"


def value_of(series: PastSeries, run: PastRun) -> str:
    """Returns the ratio of a run as its verdict has it, or its median seconds."""
    if series.kind == "seconds":
        return seconds(run.value)
    return f"{_decimals(run.value)}x{' (median of blocks)' if run.by_blocks else ''}"


def around(series: PastSeries, run: PastRun) -> str:
    """Returns the interval of the ratio of a run, or how far its seconds are spread."""
    if series.kind == "seconds" and run.low is not None and run.high is not None:
        return percent((run.high - run.low) / run.value)
    # An end of 0 or infinity says as little as none.
    least = _decimals(run.low) if run.low else ""
    most = _decimals(run.high) if run.high is not None and math.isfinite(run.high) else ""
    if least and most:
        return f"[{least}–{most}]"
    return f"at least {least}" if least else f"at most {most}" if most else "–"


def _decimals(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 9.9995 else f"{value:.4g}"


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


def _known(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {fact}" for name, fact in facts.items() if fact != UNKNOWN)


def revisions(series: PastSeries) -> str:
    """Returns which revision each night measured, nights in a row with one revision together."""
    said = []
    for revision, nights in itertools.groupby(series.runs, key=lambda run: run.code):
        days = [day(run.began_at) for run in nights]
        until = f" to {days[-1]}" if days[-1] != days[0] else ""
        said.append(f"{revision} ({days[0]}{until})")
    return f"code under test: {', '.join(said)}"


def effect(change: Change) -> str:
    """Returns by how much a series has changed, such as `+20 % (slower)`."""
    word = "slower" if change.effect > 0 else "faster"
    return f"{share(change.effect, sign='+')} ({word})"


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


def sparkline(series: PastSeries) -> str:
    """Returns the values of the last runs as bars, which are level where little changes."""
    values = [run.value for run in series.runs[-_MOST_BARS:]]
    low = min(values)
    span, top = max(*values, _FLAT * low) - low, len(_BARS) - 1
    return "".join(_BARS[round(top * (value - low) / (span or 1))] for value in values)


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
    from packaging.version import Version

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
        if old == package and package and Version(good) < Version(bad):
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
    """Returns the requirement to install for a side, or nothing if that is not known."""
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
