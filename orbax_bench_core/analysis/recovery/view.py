"""Recovery drills for people: phases, losses and verdicts, in sentences, tables and a figure."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.intervals import between
from orbax_bench_core.analysis.recovery import drills
from orbax_bench_core.analysis.summary import shortened
from orbax_bench_core.document import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

HEADINGS: Final = ("phase", "is", "median", "spread", "share", "given", "with it")
_GIVEN: Final = 5
"""Place of the first column of what was given."""
NUMBERS: Final = ("median", "spread", "share", "given", "with it")
VERDICT_HEADINGS: Final = ("phase", "verdict", "ratio", "interval")

READING: Final = """\
Each drill trains in fresh processes, kills them with SIGKILL at a step drawn between the second \
and the third save, and starts new ones. The phases are medians over the drills, in brackets an \
interval that holds the median in at least 95 % of cases. Fewer than 6 drills have none: their \
fastest and slowest stand there.
notice is the end of file on the pipe of the process that died, at whoever started it. A job \
without such a watcher waits for JAX's heartbeat instead.
start ends when JAX is up in all new processes. restore finds the latest committed checkpoint and \
loads it. first_step compiles, or reads the compilation cache, and takes a step. Making the data \
of the benchmark is in none of them.
Steps are lost since the last save that was committed, so more than an interval where a save takes \
longer than the steps between two of them. A save that was not committed leaves a directory \
behind, which Orbax keeps unless it is told otherwise.
Not measured: replacing a node, waiting for a scheduler, storage over a network, starting \
accelerators again. Give them as seconds (--add-notice, --add-start)."""
"""Reading aid of drills, one line each."""

MEANINGS: Final[dict[drills.PhaseName, str]] = {
    "notice": "from the kill until it is seen",
    "start": "new processes, until JAX is up",
    "restore": "latest checkpoint found and loaded",
    "first_step": "compiled, and one step taken",
    "recovery": "all of them",
}
_DASH: Final = "–"
_INTERVAL, _RANGE = "95 % interval", "fastest – slowest"


def _spread(phase: drills.Phase) -> str:
    if phase.low is not None and phase.high is not None:
        return f"[{doc.seconds(phase.low)}, {doc.seconds(phase.high)}]"
    return f"{doc.seconds(phase.fastest)} – {doc.seconds(phase.slowest)}" if phase.n > 1 else _DASH


def phase_row(phase: drills.Phase, total: drills.Phase) -> tuple[str, ...]:
    """Returns one phase as cells with the columns of `HEADINGS`."""
    return (
        phase.phase,
        MEANINGS[phase.phase],
        doc.seconds(phase.median),
        _spread(phase),
        doc.percent(phase.median / total.median) if total.median else _DASH,
        doc.seconds(phase.added) if phase.added else _DASH,
        doc.seconds(phase.total) if total.added else _DASH,
    )


def success(series: drills.RecoverySeries) -> str:
    """Returns how many drills came back, and what is known of what they restored."""
    said = f"{series.recovered} of {doc.count(series.drills, 'drill')} came back"
    if not series.recovered:
        return said
    if series.verified:
        return f"{said}, each with the state of a job that was never killed"
    return f"{said}; what they restored was not compared with anything"


def losses(series: drills.RecoverySeries) -> str:
    """Returns what the kills cost in steps, and what they left behind."""
    lost, left = series.steps_lost, sum(found > 0 for found in series.uncommitted)
    if not lost:
        return ""
    said = (
        f"Steps lost: median {statistics.median(lost):g}, at most {max(lost)}. "
        f"{left} of {doc.count(len(lost), 'kill')} left a save uncommitted."
    )
    if series.peers_s:
        said += (
            f" Left alone, the other processes noticed after "
            f"{doc.seconds(statistics.median(series.peers_s))} (median of {len(series.peers_s)})."
        )
    return said


def lacking(recovery: drills.Recovery) -> list[str]:
    """Returns the series of which drills did not come back, a line each with the reasons."""
    return [
        f"{series.name}: {series.recovered} of {series.drills} drills came back: "
        f"{'; '.join(series.reasons)}"
        for series in recovery.series
        if series.recovered < series.drills
    ]


def headline(recovery: drills.Recovery) -> str:
    """Returns the result of drills: one sentence per pair, or per series without arms."""
    if recovery.verdicts:
        return " ".join(map(_of_pair, recovery.verdicts))
    return " ".join(
        _of_series(series, several=len(recovery.series) > 1) for series in recovery.series
    )


def _of_series(series: drills.RecoverySeries, *, several: bool) -> str:
    about = f"{series.name}: " if several else ""
    total = series.phase("recovery")
    if total is None:
        return f"{about}none of {doc.count(series.drills, 'drill')} came back."
    largest = max(series.phases[:-1], key=lambda phase: phase.total)
    given = f", {doc.seconds(total.added)} of it given" if total.added else ""
    return (
        f"{about}back after {doc.seconds(total.total)}{given}, the longest phase is "
        f"{largest.phase} ({doc.seconds(largest.total)}); {success(series)}."
    )


def _of_pair(verdict: drills.PairVerdict) -> str:
    why = f" ({verdict.reason})" if verdict.reason else ""
    total = next((phase for phase in verdict.phases if phase.phase == "recovery"), None)
    if total is None or total.ratio is None:
        return f"{verdict.point}: {verdict.word}{why}."
    return f"{verdict.point}: {verdict.word}{why}, recovery {total.ratio:.2f}x of the baseline."


_WIDTH: Final = 9.6
_ROW: Final = 0.45
_COLOURS: Final = tuple(light for light, _ in figures.SERIES.values())


def phases_figure(series: Sequence[drills.RecoverySeries]) -> Drawing:
    """Returns the drawing of the medians of each phase, as bars end to end."""
    figure = figures.new_figure(_WIDTH, 1.6 + _ROW * len(series))
    axes = figure.subplots()
    for row, drilled in enumerate(series):
        end = 0.0
        for phase, colour in zip(drilled.phases[:-1], _COLOURS, strict=False):
            label = phase.phase if row == 0 else None
            axes.barh(row, phase.total, left=end, color=colour, height=0.6, label=label)
            end += phase.total
    names = shortened({drilled.series_id: drilled.name for drilled in series})
    axes.set_yticks(range(len(series)), [figures.label(name) for name in names.values()])
    axes.invert_yaxis()
    axes.set_xlabel("seconds from the kill")
    axes.figure.legend(loc="outside lower center", ncols=4)
    return figure


MOST_DRAWN: Final = 40


def recovery_document(recovery: drills.Recovery) -> doc.Document:
    """Returns drills for people; a terminal reads the result last."""
    result = doc.Paragraph(doc.Span(headline(recovery), strong=True))
    series = [element for drilled in recovery.series for element in _series(drilled)]
    verdicts = [element for verdict in recovery.verdicts for element in _verdict(verdict)]
    drawn = tuple(drilled for drilled in recovery.series if drilled.phases)[:MOST_DRAWN]
    figure = doc.Figure(
        "Phases of a recovery, end to end", functools.partial(phases_figure, drawn), "phases.png"
    )
    return doc.Document(
        title=f"Recovery: {recovery.suite}",
        elements=(
            doc.Heading(f"Recovery: {recovery.suite}", level=1),
            result,
            *([figure] if drawn else []),
            *series,
            *verdicts,
            doc.Section("How to read this", (doc.Items(tuple(READING.splitlines())),)),
            doc.Paragraph(f"Run {recovery.run_id}. Every number is in `recovery.json`.", "dim"),
        ),
        brief=(*series, *verdicts, result),
    )


def recovery_section(recovery: drills.Recovery) -> doc.Document:
    """Returns what the report of a run says of its drills, above the tables."""
    result = doc.Paragraph(headline(recovery))
    series = [_below(element) for drilled in recovery.series for element in _series(drilled)]
    verdicts = [_below(element) for verdict in recovery.verdicts for element in _verdict(verdict)]
    more = doc.Paragraph("Figure and explanations are in recovery.html.", "dim")
    elements = (doc.Heading("Recovery"), result, *series, *verdicts, more)
    return doc.Document(title=recovery.suite, elements=elements, brief=(result,))


def _below(element: doc.Element) -> doc.Element:
    """Returns an element below a heading, which has no headings of its own."""
    return doc.Paragraph(element.text) if isinstance(element, doc.Heading) else element


def _series(series: drills.RecoverySeries) -> list[doc.Element]:
    role: doc.Role = "plain" if series.recovered == series.drills else "bad"
    elements: list[doc.Element] = [doc.Heading(doc.Span(series.name))]
    total = series.phase("recovery")
    if total is not None:
        spread = _RANGE if total.low is None else _INTERVAL
        headings = [spread if name == "spread" else name for name in HEADINGS]
        columns = (
            doc.Column(heading, "number" if name in NUMBERS else "fixed")
            for name, heading in zip(HEADINGS, headings, strict=True)
        )
        rows = (doc.Row(phase_row(phase, total)) for phase in series.phases)
        table = doc.Table(tuple(columns), tuple(rows))
        elements.append(table if total.added else table.only(headings[:_GIVEN]))
    elements.append(doc.Paragraph(f"{success(series)}.", role))
    if series.steps_lost:
        elements.append(doc.Paragraph(losses(series)))
    elements += [doc.Paragraph(reason, "bad", mark="failed:") for reason in series.reasons]
    return elements


def _verdict_row(verdict: drills.PhaseVerdict) -> doc.Row:
    word = verdict.word if verdict.primary else f"({verdict.word})"
    return doc.Row(
        (
            verdict.phase,
            doc.Span.judged(verdict.word, word),
            _DASH if verdict.ratio is None else f"{verdict.ratio:.2f}x",
            between(verdict.low, verdict.high, "{:.2f}".format),
        )
    )


def _verdict(verdict: drills.PairVerdict) -> list[doc.Element]:
    columns = tuple(
        doc.Column(heading, "fixed" if heading in ("phase", "verdict") else "number")
        for heading in VERDICT_HEADINGS
    )
    rows = map(_verdict_row, verdict.phases)
    heading = doc.Heading(("Candidate against baseline: ", doc.Span(verdict.point)))
    return [heading, doc.Table(columns, tuple(rows))]
