"""Recovery drills for people: how fast a job is back, where the time goes, and what is lost."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.names import shortened
from orbax_bench_core.analysis.recovery import drills
from orbax_bench_core.analysis.verdicts import why
from orbax_bench_core.errors import command
from orbax_bench_core.exit_codes import WORDS
from orbax_bench_core.gate import together

READING: Final = """\
Each drill trains in fresh processes, kills them with SIGKILL at a step drawn between the second \
and the third save, and starts new ones. A phase is the median over the drills. Its interval \
holds the median in at least 95 % of cases; fewer than 6 drills have none.
`notice` is the end of file on the pipe of the process that died, as its parent reads it. A job \
without such a watcher waits for JAX's heartbeat instead.
`start` ends when JAX is up in all new processes. `restore` finds the latest committed checkpoint \
and loads it. `first_step` compiles, or reads the compilation cache, and takes a step. Making the \
data of the benchmark is in none of them.
Steps are lost since the last save that was committed, so more than an interval is lost if a save \
takes longer than the steps between two of them. A save that was not committed leaves a directory \
behind, which Orbax keeps unless it is told otherwise.
Not measured: replacing a node, waiting for a scheduler, storage over a network, starting \
accelerators again. Give them as seconds (`--add-notice`, `--add-start`)."""
"""Reading aid, one line each."""
MEANINGS: Final[dict[drills.PhaseName, str]] = {
    "notice": "from the kill until it is seen",
    "start": "new processes, until JAX is up",
    "restore": "latest checkpoint found and loaded",
    "first_step": "compiled, and one step taken",
    "recovery": "all of them",
}
_TONES: Final[tuple[pages.Tone, ...]] = ("c1", "c2", "c3", "c4")
_MOST_DRAWN: Final = 40
"""Series with bars: a drawing of hundreds shows nothing."""


def headline(recovery: drills.Recovery) -> pages.Callout:
    """Returns the result of drills, in a sentence."""
    made = sum(series.drills for series in recovery.series)
    back = sum(series.recovered for series in recovery.series)
    came = f"{back} of {pages.count(made, 'drill')} came back"
    word = together([verdict.word for verdict in recovery.verdicts]) if recovery.verdicts else ""
    if back < made and word != "REGRESSION":
        reasons = [reason for series in recovery.series for reason in series.reasons]
        return pages.Callout("NOT BACK", "; ".join((came, *reasons[:1])), "bad")
    if word:
        worst = next(verdict for verdict in recovery.verdicts if verdict.word == word)
        pairs = len(recovery.verdicts)
        more = f"the worst of {pairs} pairs" if pairs > 1 else ""
        said = filter(None, (_of_pair(worst, recovery), more, why(worst.reason), came))
        return pages.Callout(word, "; ".join(said), WORDS[word].role)
    drilled = [series for series in recovery.series if series.phases]
    if not drilled:
        return pages.Callout("NOTHING", came, "unsure")
    slowest = max(drilled, key=lambda series: series.phases[-1].total)
    total, longest = slowest.phases[-1], max(slowest.phases[:-1], key=lambda phase: phase.total)
    given = f", {pages.seconds(total.added)} of it given" if total.added else ""
    which = f" at the slowest of {len(drilled)} points" if len(drilled) > 1 else ""
    after = (
        f"after {pages.seconds(total.total)}{which}{given}, most of it {longest.phase} "
        f"({pages.seconds(longest.total)}); {came}"
    )
    if all(series.verified for series in drilled):
        return pages.Callout("RECOVERED", f"{after}, each with the right state", "good")
    return pages.Callout("UNVERIFIED", f"{after}, their state was not compared", "unsure")


def _of_pair(verdict: drills.PairVerdict, recovery: drills.Recovery) -> str:
    total = next((phase for phase in verdict.phases if phase.phase == "recovery"), None)
    if total is None or total.ratio is None:
        return f"the recovery of {verdict.point} could not be compared"
    changed = pages.change(total.ratio, total.low, total.high)
    drilled = (series for series in recovery.series if series.phases)
    ends = {series.arm: pages.seconds(series.phases[-1].median) for series in drilled}
    if len(recovery.verdicts) == 1 and len(ends) == 2:
        return f"recovery {changed}, {ends['baseline']} → {ends['candidate']}"
    return f"recovery of {verdict.point} {changed}"


def lacking(recovery: drills.Recovery) -> list[str]:
    """Returns the series of which drills did not come back, a line each with the reasons."""
    return [
        f"{series.name}: {series.recovered} of {series.drills} drills came back: "
        f"{'; '.join(series.reasons)}"
        for series in recovery.series
        if series.recovered < series.drills
    ]


def recovery_document(recovery: drills.Recovery, place: str) -> pages.Document:
    """Returns drills for people; `place` is their run directory."""
    found = recovery.series
    drawn = [series for series in found if series.phases][:_MOST_DRAWN]
    fates = tuple(line for series in found for line in _fates(series))
    return pages.Document(
        about=f"Recovery of {recovery.suite}, {sum(series.drills for series in found)} drills",
        headline=headline(recovery),
        summary=(*([_bars(drawn)] if drawn else []), _summary(found)),
        following=_following(recovery, place),
        details=(
            pages.Details("Phases", (_phases(found),)),
            pages.Details("Candidate against baseline", (_verdicts(recovery.verdicts),)),
            pages.Details("Steps lost, saves left, failures", (pages.Text(items=fates),)),
            pages.Details("How to read this", (pages.Text(items=tuple(READING.splitlines())),)),
            pages.Text(f"Run {recovery.run_id}. Every number is in `recovery.json`.", "dim"),
        ),
    )


def _following(recovery: drills.Recovery, place: str) -> pages.Code:
    if lacking(recovery):
        return pages.Code(
            command("report", place),
            "The report has the traceback of every drill that failed, and what its workers said.",
        )
    totals = [phase for series in recovery.series for phase in series.phases[-1:]]
    if any(phase.added for phase in totals):
        total = max(phase.total for phase in totals)
        job = ("--mtbf", "4h", "--save-blocking", "2s", "--save-background", "2min")
        return pages.Code(
            command("goodput", "--recovery", f"{pages.digits(total)}s", *job, "--slowdown", "0.1"),
            "How often to save with this recovery; put in the other figures of your job.",
        )
    return pages.Code(
        command("recovery", place, "--add-notice", 30, "--add-start", 180),
        "Add what this machine cannot show: the seconds until your platform notices a failure, and "
        "until it has new machines.",
    )


def _summary(found: Sequence[drills.RecoverySeries]) -> pages.Table:
    headings = ("came back", *drills.PHASES, "in all", "fastest – slowest")
    rows = []
    for series in found:
        back: pages.Role = "good" if series.recovered == series.drills else "bad"
        cells = [pages.Cell(f"{series.recovered} of {series.drills}", back)]
        cells += [pages.Cell(pages.seconds(phase.total)) for phase in series.phases]
        cells += [pages.Cell(_range(phase, given=True)) for phase in series.phases[-1:]]
        cells += [pages.Cell("–")] * (len(headings) - len(cells))
        rows.append(pages.Row(tuple(cells), pages.code(series.name)))
    return pages.Table(pages.columns(*(f"{each}#" for each in headings)), tuple(rows))


def _range(phase: drills.Phase, *, given: bool = False) -> str:
    added = phase.added if given else 0.0
    return f"{pages.seconds(phase.fastest + added)} – {pages.seconds(phase.slowest + added)}"


def _bars(drawn: Sequence[drills.RecoverySeries]) -> pages.Chart:
    """Returns the medians of each phase as bars end to end, a row per series."""
    ids = {series.series_id + (series.arm or ""): series.name for series in drawn}
    names = list(shortened(ids).values())
    marks = []
    for place, (phase, tone) in enumerate(zip(drills.PHASES, _TONES, strict=True)):
        at: list[tuple[float, float]] = []
        for row, series in enumerate(reversed(drawn)):
            before = sum(each.total for each in series.phases[:place])
            at += [(before, row - 0.3), (before + series.phases[place].total, row + 0.3)]
        marks.append(pages.Mark("bar", tuple(at), tone, phase))
    said = []
    for name, series in zip(names, drawn, strict=True):
        phases = (f"{phase.phase} {pages.seconds(phase.total)}" for phase in series.phases)
        said.append(f"{name}: {', '.join(phases)}")
    longest = max(series.phases[-1].total for series in drawn)
    return pages.Chart(
        "Phases of a recovery, end to end",
        "; ".join(said),
        pages.axis("seconds from the kill", 0, 1.02 * longest, pages.digits),
        pages.named_axis(names[::-1]),
        tuple(marks),
        40 + 36 * len(drawn),
    )


def _phases(found: Sequence[drills.RecoverySeries]) -> pages.Table:
    measured = ("drills#", "median#", "95 % interval#", "fastest – slowest#", "share#")
    columns = pages.columns("phase`", "is", *measured, "given#", "with it#")
    rows = [
        pages.Row(
            (
                phase.phase,
                MEANINGS[phase.phase],
                str(phase.n),
                pages.seconds(phase.median),
                "–"
                if phase.low is None or phase.high is None
                else f"{pages.seconds(phase.low)} – {pages.seconds(phase.high)}",
                _range(phase),
                pages.percent(phase.median / series.phases[-1].median),
                pages.seconds(phase.added) if phase.added else "–",
                pages.seconds(phase.total),
            ),
            pages.code(series.name),
        )
        for series in found
        for phase in series.phases
    ]
    return pages.Table(columns, tuple(rows))


def _fates(series: drills.RecoverySeries) -> Iterator[str]:
    name, lost = pages.code(series.name), series.steps_lost
    if lost:
        left = sum(found > 0 for found in series.uncommitted)
        yield (
            f"{name} lost {statistics.median(lost):g} steps in the median, at most {max(lost)} "
            f"(each drill: {', '.join(map(str, lost))}). {left} of {pages.count(len(lost), 'kill')}"
            f" left a save uncommitted (directories: {', '.join(map(str, series.uncommitted))})."
        )
    if series.peers_s:
        alone = ", ".join(map(pages.seconds, series.peers_s))
        yield f"{name}: left alone, the other processes noticed after {alone}."
    yield from (f"{name} failed: {reason}" for reason in series.reasons)


def _verdicts(verdicts: Sequence[drills.PairVerdict]) -> pages.Table:
    columns = pages.columns("phase`", "verdict", "ratio#", "change#")
    rows = [
        pages.Row(
            (
                phase.phase,
                pages.Cell(
                    phase.word if phase.primary else f"({phase.word})", WORDS[phase.word].role
                ),
                "–" if phase.ratio is None else f"{phase.ratio:.3f}x",
                "–" if phase.ratio is None else pages.change(phase.ratio, phase.low, phase.high),
            ),
            pages.code(verdict.point),
            dim=not phase.primary,
        )
        for verdict in verdicts
        for phase in verdict.phases
    ]
    return pages.Table(columns, tuple(rows))
