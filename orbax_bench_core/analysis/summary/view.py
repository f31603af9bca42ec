"""Summary of a run for people: what was measured, what speaks against it, and on what it ran."""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.names import heading, spoken
from orbax_bench_core.analysis.page_cache import other_cache
from orbax_bench_core.analysis.summary import tables
from orbax_bench_core.analysis.summary.charts import repeats_chart, stages_chart, stages_of
from orbax_bench_core.analysis.summary.effects import effects_line, effects_table
from orbax_bench_core.analysis.summary.model import OperationSummary, PointStatus, RunSummary
from orbax_bench_core.analysis.summary.names import short_names, varying
from orbax_bench_core.errors import command, listed
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import (
    VERIFIED_WORDS,
    OverlapFinder,
    Record,
    RunInfo,
    Series,
    Verified,
)

_ROOM: Final = 78
"""Columns of a terminal that a table of the summary may take."""
_MOST_POINTS: Final = 6
_MOST_FAULTS: Final = 3
"""Lines of a terminal with what speaks against the figures."""
_MOST_ROWS: Final = 1000
"""Rows of a table on a page: one of ten thousand could not be opened."""
_TRUSTED: Final = ("saved", "reference")
_NEAR: Final = 0.95
"""Share of a whole from which on its part is not named next to it."""


def summary_document(
    info: RunInfo,
    summary: RunSummary,
    place: str,
    *,
    example: Record | None = None,
    extra: tables.ExtraColumns = tables.NO_EXTRA,
    answers: Mapping[str, pages.Document] | None = None,
    files: Mapping[str, str] | None = None,
    metrics: bool = False,
) -> pages.Document:
    """Returns the summary of a run.

    Args:
        info: The run.
        summary: Its figures.
        place: Its directory.
        example: A record, which says what it ran on.
        extra: Columns of another package.
        answers: What else was concluded of the run, by name; the headline is that of the first.
        files: Files next to the page, and what each is.
        metrics: Whether every metric of the summary is shown.
    """
    unknown = [extra.legend] if extra.legend and not extra.headings else []  # why no limits
    extra, found = tables.with_measured(summary, extra), dict(answers or {})
    series = [each for entry in info.expansion.points for each in Series.all_of(entry)]
    short = short_names(series)
    by_operation = _by_operation(summary, short)
    drawn = [repeats_chart(heading(name), rows) for name, rows in by_operation.items()]
    leading = [
        each for of in found.values() for each in of.summary if isinstance(each, pages.Chart)
    ]
    own = headline(info, summary)
    answer = own if own.role == "bad" or not found else next(iter(found.values())).headline
    others = [f"{name}: {of.headline.said}" for name, of in found.items() if of.headline != answer]
    faults, names = [*unknown, *_faults(summary)], files or {}
    columns = pages.columns("file`", "what it is~")
    linked = (pages.Row((pages.Cell(name, href=name), what)) for name, what in names.items())
    return pages.Document(
        about=_about(info),
        headline=answer,
        summary=(
            *(leading or drawn)[:1],
            _points_table(summary, series, short, extra),
            pages.Text(items=tuple(others)),
            pages.Text(items=tuple(faults[:_MOST_FAULTS]), role="bad"),
            pages.Text(_more(faults, names), "dim"),
            pages.Text(_traced(summary.points), "dim"),
        ),
        following=_following(info, place, answer, own, found),
        details=(
            *(
                _folded(name if of.headline == answer else f"{name}: {of.headline.said}", of)
                for name, of in found.items()
            ),
            pages.Details("Every operation", tuple(_every_operation(summary, extra))),
            pages.Details(
                "Memory, I/O and limits",
                (
                    tables.extra_table(summary.operations[:_MOST_ROWS], extra),
                    pages.Text(extra.legend, "dim"),
                ),
            ),
            pages.Details("Every repeat", tuple(drawn if leading else drawn[1:])),
            pages.Details("Where the time went", tuple(_stages(summary, short, by_operation))),
            pages.Details("What did not pass", tuple(_failures(summary.points))),
            pages.Details("What speaks against these figures", (pages.Text(items=tuple(faults)),)),
            pages.Details(
                "Verification", (pages.Text(items=tuple(verification_lines(summary.points))),)
            ),
            pages.Details(
                "Options in effect",
                (pages.Text(effects_line(summary.points)), effects_table(summary.points)),
            ),
            pages.Details("Notes", (pages.Text(items=tuple(_notes(info, summary))),)),
            pages.Details("What it ran on", tuple(_machine(info, example, summary))),
            pages.Details("Files", (pages.Table(columns, tuple(linked)),)),
            *([pages.Details("Every metric", (tables.metrics_table(summary),))] if metrics else []),
        ),
    )


def headline(info: RunInfo, summary: RunSummary) -> pages.Callout:
    """Returns the result of a run in a sentence: medians, or failures."""
    points = summary.points
    failed = sum(point.failed for point in points)
    total = sum(point.failed + point.passed + point.skipped for point in points)
    reason = next((point.reason for point in points if point.failed), "")
    if not points:
        return pages.Callout("NOTHING", "no repeat has a record yet", "unsure")
    if not summary.measured:
        reason = next((point.reason for point in points), "")
        return pages.Callout("NOTHING", f"no repeat of {total} has passed: {reason}", "bad")
    if failed:
        having = sum(bool(point.failed) for point in points)
        where = f" at {having} of {len(points)} points" if len(points) > 1 else ""
        said = f"{failed} of {pages.count(total, 'repeat')} failed{where}: {reason}"
        return pages.Callout("INCOMPLETE", said, "bad")
    if summary.left_out:
        more = pages.count(len(summary.left_out), "file")
        return pages.Callout("INCOMPLETE", f"{more} left out: {summary.left_out[0]}", "bad")
    if not all(point.measured for point in points if point.passed):
        which = next(point for point in points if point.passed and not point.measured)
        return pages.Callout("INCOMPLETE", f"{which.point}: {which.flag}", "bad")
    alone = sum(point.not_alone for point in points)
    shared = OverlapFinder.warning(alone, "comparisons of these times")
    said = _measured(info, summary)
    return pages.Callout("MEASURED", f"{said} ({shared})" if shared else said)


def _measured(info: RunInfo, summary: RunSummary) -> str:
    """Returns the fastest and the slowest medians of whole operations."""
    series = [each for entry in info.expansion.points for each in Series.all_of(entry)]
    short, said = short_names(series), list[str]()
    several = len({operation.time.point_id for operation in summary.operations}) > 1
    for name, rows in _by_operation(summary, short).items():
        if name not in _whole_operations(summary):
            continue
        ordered = sorted(rows.items(), key=lambda row: row[1].time.median)
        (fast, first), (slow, last) = ordered[0], ordered[-1]
        ends = pages.seconds(first.time.median), pages.seconds(last.time.median)
        if several and len(ordered) > 1:
            said.append(
                f"{spoken(name)} take {ends[0]} ({pages.code(fast)}) to {ends[1]} "
                f"({pages.code(slow)})"
            )
        else:
            spread = first.time.spread
            noise = f" (spread {pages.percent(spread)})" if spread is not None else ""
            said.append(f"{spoken(name)} take {ends[0]}{noise}")
    passed = sum(point.passed for point in summary.points)
    size = f"over {pages.count(passed, 'repeat')}"
    pairs = len(info.expansion.pairs)
    points = f" at {len(summary.points)} points" if several else ""
    if info.paired:
        points = f" in both arms of {pages.count(pairs, 'point')}" if pairs > 1 else " in both arms"
    left = f", and {pages.count(len(said) - 2, 'more operation')}" if len(said) > 2 else ""
    return f"{', '.join(said[:2])}{left}{points} {size}"


def _whole_operations(summary: RunSummary) -> list[str]:
    """Returns the operations that say something new: those of most points first, then wholes.

    Parts of an operation that take as long as the whole say nothing new.
    """
    times: dict[str, list[float]] = {}
    for operation in summary.operations:
        times.setdefault(operation.time.operation, []).append(operation.time.median)
    found = {}
    for name, of in times.items():
        wholes = [times[other] for other in times if name.startswith(f"{other}_")]
        if not any(sum(of) >= _NEAR * sum(whole) for whole in wholes):
            found[name] = (-len(of), bool(wholes))
    return sorted(found, key=found.__getitem__)


def _by_operation(
    summary: RunSummary, short: Mapping[str, str]
) -> dict[str, dict[str, OperationSummary]]:
    """Returns the rows of each operation by the names of their points; whole operations first."""
    rows: dict[str, dict[str, OperationSummary]] = {name: {} for name in _whole_operations(summary)}
    for operation in summary.operations:
        time = operation.time
        rows.setdefault(time.operation, {})[short[time.point_id]] = operation
    return rows


def _about(info: RunInfo) -> str:
    points = pages.count(len(info.expansion.points), "point")
    size = "in both arms" if info.paired else f"x {pages.count(info.num_repeats, 'repeat')}"
    left = "" if info.status == "complete" else f", {info.status}"
    return f"{info.suite_name}, {points} {size}, {info.created_at:%Y-%m-%d %H:%M} UTC{left}"


def _points_table(
    summary: RunSummary,
    series: Sequence[Series],
    short: Mapping[str, str],
    extra: tables.ExtraColumns,
) -> pages.Table:
    """Returns the medians and spreads: a row per point or, of a single one, per operation."""
    found: dict[str, dict[str, OperationSummary]] = {}
    for operation in summary.operations:
        found.setdefault(operation.time.point_id, {})[operation.time.operation] = operation
    if len(found) < 2:
        return _one_point(summary.operations, extra)
    names = _whole_operations(summary)
    cells = {
        id_: [_median(of[name]) if name in of else "–" for name in names]
        for id_, of in found.items()
    }
    titles = [
        next(tables.labelled(of[name]) for of in found.values() if name in of) for name in names
    ]
    fields = varying([each for each in series if each.id in found])
    widths = [2 + max(len(name), *map(len, of.values())) for name, of in fields.items()]
    widest = [
        2 + max(len(title), *(len(of[place]) for of in cells.values()))
        for place, title in enumerate(titles)
    ]
    if sum(widths) + widest[0] <= _ROOM:
        labels = {id_: [of[id_] for of in fields.values()] for id_ in found}
        heads = [f"{name}`" for name in fields]
    else:
        labels, heads, widths = {id_: [] for id_ in found}, [], []
    # As many operations as a terminal has room for, one at least: the details have all of them.
    kept = next((n for n in range(len(titles), 1, -1) if sum(widths) + sum(widest[:n]) <= _ROOM), 1)
    ordered = sorted(found, key=lambda id_: _order(found[id_], names))
    rows = (
        pages.Row((*labels[id_], *cells[id_][:kept]), "" if heads else pages.code(short[id_]))
        for id_ in ordered[:_MOST_ROWS]
    )
    return pages.Table(
        pages.columns(*heads, *(f"{title}#" for title in titles[:kept])), tuple(rows)
    )


def _order(of: Mapping[str, OperationSummary], names: Sequence[str]) -> float:
    """Returns the time that a point is ordered by: that of its first operation."""
    return next((of[name].time.median for name in names if name in of), 0.0)


def _median(operation: OperationSummary) -> str:
    spread = operation.time.spread
    noise = "" if spread is None else f" ({pages.percent(spread)})"
    return f"{pages.seconds(operation.time.median)}{noise}"


def _one_point(operations: Sequence[OperationSummary], extra: tables.ExtraColumns) -> pages.Table:
    shown = [at for at, heading in enumerate(extra.headings) if heading in _OF_ONE]
    rows = []
    for operation in operations:
        time = operation.time
        more = extra.cells.get((time.point_id, time.operation), ("–",) * len(extra.headings))
        cells = (
            tables.labelled(operation),
            pages.seconds(time.median),
            pages.percent(time.spread),
            f"{pages.seconds(time.minimum)} – {pages.seconds(time.maximum)}",
            tables.rate(operation),
        )
        rows.append(pages.Row((*cells, *(more[at] for at in shown))))
    headings = ("median#", "spread#", "fastest – slowest#", "GiB/s#")
    columns = pages.columns("operation", *headings, *(f"{extra.headings[at]}#" for at in shown))
    return pages.Table(columns, tuple(rows))


_OF_ONE: Final = ("of limit",)


def _more(faults: Sequence[str], files: Mapping[str, str]) -> str:
    """Returns how to read the figures, what else speaks against them, and which files there are."""
    more = len(faults) - _MOST_FAULTS
    said = "In parentheses the spread: interquartile range over median."
    if more > 0:
        said = f"{said} {more} more doubts: with --details."
    named = [name for name in files if name.endswith((".html", ".csv", ".parquet"))]
    return f"{said} Files: {', '.join(['report.html', *named])}." if files else said


def _following(
    info: RunInfo,
    place: str,
    answer: pages.Callout,
    own: pages.Callout,
    answers: Mapping[str, pages.Document],
) -> pages.Code:
    if answer == own or not answers:
        said = "Every operation, what did not pass, and on what it ran."
        if info.paired:
            return pages.Code(command("compare", place), "The verdict of this comparison.")
        return pages.Code(command("report", place, "--details"), said)
    following = next(iter(answers.values())).following
    return following or pages.Code(command("report", place, "--details"), "Every operation.")


def _folded(title: str, of: pages.Document) -> pages.Details:
    """Returns the summary of another conclusion, without its drawing, to be folded."""
    rest = (each for each in of.summary if not isinstance(each, pages.Chart))
    return pages.Details(title, tuple(rest))


def _every_operation(summary: RunSummary, extra: tables.ExtraColumns) -> Iterator[pages.Element]:
    yield tables.operations_table(summary.operations[:_MOST_ROWS])
    left = len(summary.operations) - _MOST_ROWS
    yield pages.Text(f"Only in summary.csv: {pages.count(left, 'more row')}." if left > 0 else "")
    yield pages.Text(tables.LEGEND, "dim")
    yield pages.Text(items=tuple(tables.operation_notes(summary, extra)))


def _stages(
    summary: RunSummary,
    short: Mapping[str, str],
    by_operation: Mapping[str, Mapping[str, OperationSummary]],
) -> Iterator[pages.Element]:
    """Yields where the time of each operation went, for those of which Orbax says it."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (point_id, operation), medians in tables.medians_of(summary).items():
        if stages := stages_of(medians):
            found.setdefault(operation, {})[short[point_id]] = stages
    for operation, rows in by_operation.items():
        if staged := found.get(operation):
            yield stages_chart(heading(operation), rows, staged)


def _faults(summary: RunSummary) -> Iterator[str]:
    """Yields what speaks against the figures, in counts, the most serious first."""
    points = summary.points
    alone = sum(point.not_alone for point in points)
    if said := OverlapFinder.warning(alone, "comparisons of these times"):
        yield said
    yield from (f"left out: {line}" for line in summary.left_out)
    yield from (f"{point.point} skipped: {point.reason}" for point in points if point.skipped)
    yield from (f"{point.point}: {point.flag}" for point in points if point.flag is not None)
    yield from tables.faults(summary)
    for word, names in _by_verified(points).items():
        if word not in _TRUSTED:
            yield f"{pages.count(len(names), 'point')} {VERIFIED_WORDS[word]}"
    for point in points:
        if point.retried:
            yield (
                f"{point.point}: {point.retried} of {point.passed} repeats passed only when they "
                f"were tried again, and count; the first attempt of the first: {point.retried_for}"
            )
    effects = [effect for point in points for effect in point.effects]
    if off := {effect.option for effect in effects if effect.state == "not in effect"}:
        yield f"without effect: {listed(map(pages.code, sorted(off)))}"


def _by_verified(points: Iterable[PointStatus]) -> dict[Verified, list[str]]:
    """Returns the points of which a repeat passed, by what their values were compared with."""
    names: dict[Verified, list[str]] = {word: [] for word in VERIFIED_WORDS}
    for point in points:
        if point.passed:
            names[point.verified].append(f"{point.point} {point.point_id}")
    return {word: found for word, found in names.items() if found}


def verification_lines(points: Iterable[PointStatus]) -> Iterator[str]:
    """Yields a line per object of comparison; points that are not verified are named."""
    for word, names in _by_verified(points).items():
        which = "" if word in _TRUSTED else f": {listed(names, most=8)}"
        yield f"{pages.count(len(names), 'point')} {VERIFIED_WORDS[word]}{which}"


def _failures(points: Sequence[PointStatus]) -> Iterator[pages.Element]:
    """Yields the points of which repeats failed or were skipped, and what is known of each way."""
    rows = tuple(
        pages.Row(
            (
                f"{point.point} {point.point_id}",
                *map(str, (point.passed, point.failed, point.skipped)),
                point.reason,
            )
        )
        for point in points
        if point.failed or point.skipped
    )
    columns = pages.columns("point`", "passed#", "failed#", "skipped#", "reason~")
    yield pages.Table(columns, rows[:_MOST_ROWS])
    for point in points:
        for failure in point.failures:
            several = "repeats" if len(failure.repeats) > 1 else "repeat"
            which = f"{point.point} {several} {listed(failure.repeats, most=10)}"
            said, shown = f"{which}: {failure.error.said}", failure.error.shown.strip()
            yield pages.Details(said, (pages.Code(shown),)) if shown else pages.Text(said)


def _notes(info: RunInfo, summary: RunSummary) -> Iterator[str]:
    yield from notes_lines(info)
    if cold_or_warm := other_cache(operation.cache for operation in summary.operations):
        yield cold_or_warm
    for point in summary.points:
        if point.not_alone:
            yield (
                f"{point.point}: {point.not_alone} of {point.passed} repeats were not alone: "
                "another point of the run was measured on the same machine meanwhile, and both "
                "have part in these times"
            )


def _traced(points: Sequence[PointStatus]) -> str:
    traced = sum(point.traced for point in points)
    if not traced:
        return ""
    return (
        f"Traced: {pages.count(traced, 'warm-up')}, in no figure, since a trace makes operations "
        "slower; the traces are in tensorboard/"
    )


def notes_lines(info: RunInfo) -> Iterator[str]:
    """Yields the notes of a suite, and the combinations that are skipped."""
    yield from (f"note: {note}" for note in info.expansion.notes)
    yield from (f"skipped: {skip.point.name}: {skip.reason}" for skip in info.expansion.skipped)


def _machine(info: RunInfo, example: Record | None, summary: RunSummary) -> Iterator[pages.Element]:
    """Yields the hardware and software of the run."""
    if example is None:
        return
    provenance = example.provenance
    host, devices, git = (_mapping(provenance.get(name)) for name in ("host", "devices", "git"))
    versions = _mapping(provenance.get("versions"))
    warmups = pages.count(info.execution.warmups, "warm-up")
    facts = {
        "run": f"{info.run_id}, order {info.execution.order}, {warmups}",
        "host": f"{host['name']}, {host['cpu']}, {host['cpu_count']} CPUs, "
        f"{_memory(host['memory_bytes'])} memory",
        "hosts": "; ".join(summary.hosts),
        "kernel": str(host["kernel"]),
        "versions": ", ".join(f"{name} {v}" for name, v in versions.items()) or UNKNOWN,
        "code under test": example.code.words,
        "orbax-bench": f"{git['commit']}, dirty: {git['dirty']}",
    }
    if devices:
        facts["devices"] = f"{devices['count']} x {devices['kind']} ({devices['platform']})"
    sizes = {
        point.checkpoint: pages.num_bytes(point.checkpoint_bytes)
        for point in summary.points
        if point.checkpoint_bytes is not None
    }
    every = [f"{name} {size}" for name, size in sizes.items()]
    alike = len(set(sizes.values())) == 1
    facts["checkpoint size"] = next(iter(sizes.values())) if alike else ", ".join(every)
    rows = tuple(pages.Row((label, fact)) for label, fact in facts.items() if fact)
    yield pages.Table(pages.columns("what", "is~"), rows)


def _memory(said: object) -> str:
    return pages.num_bytes(said) if isinstance(said, int) and 0 <= said < 2**63 else UNKNOWN


def _mapping(part: object) -> collections.defaultdict[str, object]:
    """Returns a part of a provenance, in which what it does not say is unknown."""
    said = part if isinstance(part, dict) else {}
    return collections.defaultdict(lambda: UNKNOWN, said)
