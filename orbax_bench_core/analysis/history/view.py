"""History for people: which operation changed and when, each run of every series, and its notes."""

import collections
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.history import words
from orbax_bench_core.analysis.history.build import differences
from orbax_bench_core.analysis.history.model import Change, History, PastRun, PastSeries
from orbax_bench_core.analysis.names import heading
from orbax_bench_core.gate import NIGHTS, NightCount

_RAW: Final = (
    "Raw seconds differ from day to day with the same code, so no changes are looked for. Run with "
    "a pinned reference arm (`orbax-bench ab`) for a series that stays stable."
)
"""Reason why a series of seconds has no flags."""
_MOST_REMARKS: Final = 3
MOST_FIGURES: Final = 60
"""Series that have a figure: a page of thousands could not be opened."""
_MOST_LABELS: Final = 7
_MOST_NOTES: Final = 3
_LEAST: Final = 0.05
"""Least relative room that an axis of ratios shows on each side, lest noise look like mountains."""


def history_document(history: History, *, every: bool = False) -> pages.Document:
    """Returns past runs for people, series that changed first.

    With `every`, operations that decide no verdict are shown, too.
    """
    series = words.shown(history, every=every)
    significance = pages.share(history.significance)
    reading = words.READING.format(significance=significance, nights=NIGHTS)
    notes = _notes(history, series)
    return pages.Document(
        about=f"History of {pages.count(history.num_runs, 'run')}, {len(series)} series",
        headline=headline(history, series),
        summary=(
            *map(_chart, series[:1]),
            _overview(series),
            pages.Text(items=tuple(_excesses(series)), role="bad"),
            pages.Text(items=tuple(remarks(series, history.fewest_runs))),
            pages.Text(_hidden(history, series), "dim", notes[:_MOST_NOTES]),
        ),
        following=_following(series),
        details=(
            *(_details(shown, at) for at, shown in enumerate(series)),
            pages.Details("What is not shown", (pages.Text(items=notes),)),
            pages.Details("How to read this", (pages.Text(items=tuple(reading.splitlines())),)),
        ),
    )


def headline(history: History, series: Sequence[PastSeries]) -> pages.Callout:
    """Returns the result of a history in a sentence; `series` are those that are shown.

    The first that holds: worse than its baseline, not judged, steady, flagged.
    """
    ratios = [each for each in series if each.kind == "ratio"]
    fewest = history.fewest_runs
    judged = [each for each in ratios if each.changes or len(each.runs) >= fewest]
    worse = _excesses(series)
    if worse:
        more = f"; {len(worse) - 1} more such findings" if len(worse) > 1 else ""
        return pages.Callout("WORSE THAN ITS BASELINE", f"{worse[0]}{more}", "bad")
    if not ratios:
        said = f"no ratio to a reference arm in {len(series)} series, so no change can be told"
        return pages.Callout("NOT JUDGED", said, "unsure")
    runs = pages.count(history.num_runs, "run")
    if not judged:
        most = max(len(each.runs) for each in ratios)
        said = f"it takes {fewest} runs of a ratio to flag a change, and the longest has {most}"
        return pages.Callout("NOT JUDGED", said, "unsure")
    if not (found := _worst(series)):
        said = f"no flag in {pages.count(len(judged), 'ratio')} to a reference arm over {runs}"
        return pages.Callout("STEADY", said, "good")
    slowed, change = found
    flagged = sum(bool(each.changes) for each in judged)
    since = f"{heading(slowed.operation)} {words.effect(change)} since {_date(slowed, change)}"
    cause = f" ({'; '.join(change.differs)})" if change.differs else ""
    said = f"{since}{cause}; {flagged} of {len(judged)} ratios are flagged, to be confirmed"
    return pages.Callout("FLAGGED", said, "unsure")


def _worst(series: Sequence[PastSeries]) -> tuple[PastSeries, Change] | None:
    changes = [(each, change) for each in series for change in each.changes]
    return max(changes, key=lambda found: found[1].effect, default=None)


def _date(series: PastSeries, change: Change) -> str:
    return words.day(series.runs[change.index].began_at)


def _following(series: Sequence[PastSeries]) -> pages.Code | None:
    found = _worst(series)
    if found is None or not found[1].question:
        return None
    return pages.Code(found[1].question, "A flag is a question; this comparison answers it.")


def _excesses(series: Sequence[PastSeries]) -> list[str]:
    return list(dict.fromkeys(said for each in series for said in words.excesses(each)))


def _hidden(history: History, series: Sequence[PastSeries]) -> str:
    hidden = len(history.series) - len(series)
    counts = {
        "series of operations that decide nothing (--all shows them)": hidden,
        "passed over": len(history.passed_over),
        "left out": len(history.left_out),
    }
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return f"Not shown: {said}." if said else ""


def _notes(history: History, series: Sequence[PastSeries]) -> tuple[str, ...]:
    notes = [f"passed over: {place}: nothing has passed" for place in history.passed_over]
    notes += [f"left out: {line}" for line in history.left_out]
    if len(series) > MOST_FIGURES:
        notes.append(f"The first {MOST_FIGURES} series have figures, those that changed first.")
    return tuple(notes)


def remarks(series: Iterable[PastSeries], fewest: int) -> Iterator[str]:
    """Yields the other notes, each once, with the number of series it is about.

    `fewest` are the runs before which no change can be flagged.
    """
    found = collections.Counter(remark for each in series for remark in _remarks(each, fewest))
    for remark, count in found.items():
        yield f"{count} series: {remark}" if count > 1 else remark


def _remarks(series: PastSeries, fewest: int) -> Iterator[str]:
    """Yields the reasons to read the values of a series with care."""
    runs = series.runs
    if series.kind == "seconds":
        yield _RAW
    else:
        if len(runs) < fewest:
            yield f"Changes are looked for from {fewest} runs on."
        changed = list(_moves([run.reference for run in runs], runs))
        yield from _some("The reference did not hold still", changed)
    yield from _some("The machine changed", list(_moves([run.machine for run in runs], runs)))


def _some(what: str, found: Sequence[str]) -> list[str]:
    if not found:
        return []
    rest = len(found) - _MOST_REMARKS
    more = f"; and {rest} more times" if rest > 0 else ""
    return [f"{what}: {'; '.join(found[:_MOST_REMARKS])}{more}."]


def _moves(facts: Sequence[Mapping[str, str]], runs: Sequence[PastRun]) -> Iterator[str]:
    """Yields the changes of facts that a series needs constant, and the run of each."""
    for before, now, run in zip(facts, facts[1:], runs[1:], strict=False):
        differs = differences(now, before)
        if differs:
            yield f"{', '.join(differs)} from run {run.run_id} on"


def _overview(series: Sequence[PastSeries]) -> pages.Table:
    rows = []
    for each in series:
        last = each.changes[-1] if each.changes else None
        role: pages.Role = "bad" if last and last.effect > 0 else "good"
        rows.append(
            pages.Row(
                (
                    heading(each.operation),
                    str(len(each.runs)),
                    words.level(each, each.runs[-1].value),
                    pages.Cell(pages.share(last.effect, sign="+"), role) if last else "–",
                    _date(each, last) if last else "–",
                    words.sparkline(each),
                ),
                f"{pages.code(each.point)} {each.point_id}",
            )
        )
    order = list(dict.fromkeys(row.group for row in rows))
    rows.sort(key=lambda row: order.index(row.group))
    columns = pages.columns("operation", "runs#", "latest#", "change#", "since", "trend")
    return pages.Table(columns, tuple(rows))


def _details(series: PastSeries, place: int) -> pages.Details:
    about = f"{heading(series.operation)} of {pages.code(series.point)} {series.point_id}"
    questions = [
        pages.Text(words.asking(change))
        if not change.question
        else pages.Code(change.question, f"To confirm {words.effect(change)}:")
        for change in series.changes
    ]
    return pages.Details(
        about,
        (
            pages.Text(words.sides(series), "dim"),
            *([_chart(series)] if 0 < place < MOST_FIGURES else []),
            *([_parts(series)] if series.kind == "ratio" else []),
            *questions,
            pages.Text(words.revisions(series), "dim"),
            _runs(series),
        ),
    )


def _parts(series: PastSeries) -> pages.Table:
    """Returns the runs between the changes of a series of ratios."""
    rows = []
    for part, change in zip(series.parts, (None, *series.changes), strict=True):
        cells: list[str | pages.Cell] = [
            words.day(part[0].began_at),
            words.day(part[-1].began_at),
            str(len(part)),
            f"{statistics.median(run.value for run in part):.3f}x",
            *["–"] * 5,
        ]
        if change is not None:
            role: pages.Role = "bad" if change.effect > 0 else "good"
            cells[4:] = (
                pages.Cell(words.effect(change), role),
                words.day(series.runs[change.flagged].began_at),
                f"{change.statistic:.3g}",
                f"{change.threshold:.3g}",
                "; ".join(change.differs) or "nothing that is recorded differs",
            )
        rows.append(pages.Row(tuple(cells)))
    columns = pages.columns(
        *("from", "to", "runs#", "ratio#", "change#", "flagged", "statistic#", "threshold#"),
        "changed with~",
    )
    return pages.Table(columns, tuple(rows))


def _runs(series: PastSeries) -> pages.Table:
    named = {
        "ratio": ("blocks#", "ratio#", "95 % interval#", "failures", "stalls"),
        "seconds": ("n#", "median#", "spread#"),
    }[series.kind]
    columns = pages.columns("run`", "began", *named, "code under test~", "what ran~")
    rows = (
        pages.Row(
            (
                run.run_id,
                f"{run.began_at:%Y-%m-%d %H:%M}",
                str(run.n),
                words.value_of(series, run),
                words.around(series, run),
                *(map(_counted, (run.failures, run.stalls)) if series.kind == "ratio" else ()),
                run.code,
                words.what_ran(run),
            )
        )
        for run in series.runs
    )
    return pages.Table(columns, tuple(rows))


def _counted(found: NightCount | None) -> str:
    if found is None:
        return "–"
    return f"{found.candidate}, baseline {found.baseline}, of {found.operations}"


def _chart(series: PastSeries) -> pages.Chart:
    """Returns every run with its interval, or quartiles of seconds, and where the level changes."""
    runs, ratio = series.runs, series.kind == "ratio"
    values = [run.value for run in runs]
    every = [end for run in runs for end in (run.low, run.value, run.high) if end]
    if ratio:
        ends = (min(every) / (1 + _LEAST), max(every) * (1 + _LEAST))
    else:  # one run far out, which is then beyond the axis, does not flatten the others
        ends = (0.0, 1.15 * pages.Scale.of([values]).high)
    # Where an end of an interval is open, its line goes on to that of the axis.
    whiskers = [
        (float(at), end)
        for at, run in enumerate(runs)
        if run.low is not None or run.high is not None
        for end in (run.low or ends[0], run.high or ends[1])
    ]
    spread = "95 % interval" if ratio else "quartiles"
    marks = [pages.Mark("whisker", tuple(whiskers), "dim", spread)]
    if ratio:
        marks.append(pages.Mark("line", ((-0.5, 1.0), (len(runs) - 0.5, 1.0)), "dim"))
        marks += _levels(series)
    for change in series.changes:
        tone: pages.Role = "bad" if change.effect > 0 else "good"
        line = tuple((change.index - 0.5, end) for end in ends)
        marks.append(pages.Mark("line", line, tone, words.effect(change), dashed=True))
    marks.append(pages.Mark("dots", tuple(enumerate(values)), "c1", "run"))
    stride = -(-len(runs) // _MOST_LABELS)
    days = ["" if at % stride else words.day(run.began_at) for at, run in enumerate(runs)]
    steps = (f", {words.effect(change)} on {_date(series, change)}" for change in series.changes)
    first, last = (words.level(series, run.value) for run in (runs[0], runs[-1]))
    write = (lambda value: f"{pages.digits(value)}x") if ratio else pages.seconds
    return pages.Chart(
        f"{heading(series.operation)} of {pages.code(series.point)}, run by run",
        f"{len(runs)} runs, from {first} to {last}{''.join(steps)}",
        pages.named_axis(days),
        pages.axis("", *ends, write, log=ratio),
        tuple(marks),
    )


def _levels(series: PastSeries) -> list[pages.Mark]:
    """Returns the median of the runs between changes, each as a line."""
    found, start = [], 0
    for part in series.parts:
        level = statistics.median(run.value for run in part)
        ends = ((start - 0.5, level), (start + len(part) - 0.5, level))
        found.append(pages.Mark("line", ends, "plain", "median between changes"))
        start += len(part)
    return found
