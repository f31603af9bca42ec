"""Page of a run's summary: tables of operations, remarks, problems, provenance."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.page_cache import other_cache
from orbax_bench_core.analysis.summary.charts import charts
from orbax_bench_core.analysis.summary.effects import effects_elements, effects_line
from orbax_bench_core.analysis.summary.model import Failure, MetricSummary, PointStatus, RunSummary
from orbax_bench_core.analysis.summary.tables import (
    MEASURED,
    NO_EXTRA,
    ExtraColumns,
    PointTable,
    headings,
    not_alone,
    operations_table,
    point_tables,
    retried_lines,
    shared_warning,
    traced_line,
    with_measured,
    wrapped,
)
from orbax_bench_core.document import count
from orbax_bench_core.errors import listed
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import (
    VERIFIED_WORDS,
    Record,
    RunInfo,
    Series,
    Verified,
)

if TYPE_CHECKING:
    from orbax_bench_core.analysis.summary.model import PointStatus


def summary_document(
    info: RunInfo,
    summary: RunSummary,
    example: Record | None = None,
    extra: ExtraColumns = NO_EXTRA,
    answer: doc.Document | None = None,
    files: Mapping[str, str] | None = None,
) -> doc.Document:
    """Returns the page of the summary of a run; `terminal_document` is what a terminal shows."""
    above = () if answer is None else answer.elements
    return doc.Document(
        title=info.suite_name,
        elements=_page(info, summary, example, extra, above, files or {}),
        escape=False,
    )


def _page(
    info: RunInfo,
    summary: RunSummary,
    example: Record | None,
    extra: ExtraColumns,
    answer: tuple[doc.Element, ...],
    files: Mapping[str, str],
) -> tuple[doc.Element, ...]:
    extra = with_measured(summary, extra)
    tables = point_tables(summary, extra)
    computed = (
        "Median and interquartile spread over the measured repeats, each on its slowest host; "
        "GiB/s is all bytes over all seconds."
    )
    problems = [point for point in summary.points if point.failed or point.skipped]
    return (
        doc.Heading(doc.Span(info.suite_name), level=1),
        doc.Only("html", (_run(info, summary, "×"),)),
        doc.Only("markdown", (_run(info, summary, "x"),)),
        *shared_warning(summary.points),
        *answer,
        doc.Only("html", charts(info, summary, tables, extra)),
        doc.Only("markdown", (doc.Heading("Time per operation"), doc.Paragraph(computed))),
        doc.Only("markdown", (operations_table(tables, extra),)),
        doc.Only("markdown", (*_legend(extra), *_remarks(tables))),
        doc.Section(
            "What did not pass",
            (*(_problems(problems) if problems else ()), *retried_lines(summary.points)),
        ),
        doc.Section("Verification", _verification(summary.points)),
        doc.Section("Options in effect", effects_elements(summary.points)),
        doc.Section("Notes", _notes(info, summary)),
        doc.Heading("What it ran on"),
        doc.Facts(
            tuple(
                (label, doc.Span(fact))
                for label, fact in provenance_facts(example, summary.hosts, summary.points).items()
            )
        ),
        doc.Only("html", (doc.Section("Files beside this page", _files(files)),)),
    )


def _other_cache(summary: RunSummary) -> str:
    return other_cache(operation.cache for operation in summary.operations)


def _legend(extra: ExtraColumns) -> tuple[doc.Element, ...]:
    return (doc.Paragraph(extra.legend, "dim"),) if extra.legend else ()


def _files(files: Mapping[str, str]) -> tuple[doc.Element, ...]:
    items = tuple((doc.Span(name, href=name), f": {what}") for name, what in files.items())
    return (doc.Items(items),) if items else ()


def _run(info: RunInfo, summary: RunSummary, times: str) -> doc.Paragraph:
    if info.paired:
        size = _paired_size(info, summary)
    else:
        size = (
            f"{count(info.num_series, 'point')} {times} {count(info.num_repeats, 'repeat')}, order "
            f"{info.execution.order}"
        )
    said = (
        f", begun {info.created_at:%Y-%m-%d %H:%M} UTC, {info.status}: {size}, "
        f"{info.execution.warmups} warm-up(s)."
    )
    return doc.Paragraph(("Run ", doc.Span(info.run_id, code=True), said), "dim")


def _paired_size(info: RunInfo, summary: RunSummary) -> str:
    """Returns how much was measured of each pair: its blocks, and the operations of its arms."""
    status = {point.point_id: point for point in summary.points}
    arms = [
        [status[series.id] for series in Series.all_of(pair) if series.id in status]
        for pair in info.expansion.pairs
    ]
    blocks = [
        len(frozenset.intersection(*(arm.blocks for arm in found))) if found else 0
        for found in arms
    ]
    passed = [arm.passed for found in arms for arm in found] or [0]
    return (
        f"{count(len(arms), 'point')} in both arms, {_range(blocks, 'whole block')}, "
        f"{_range(passed, 'operation')} per arm"
    )


def _range(numbers: Sequence[int], what: str) -> str:
    low, high = min(numbers, default=0), max(numbers, default=0)
    return count(high, what) if low == high else f"{low} to {count(high, what)}"


def _remarks(tables: Sequence[PointTable]) -> tuple[doc.Element, ...]:
    """Returns remarks for below a table, which has no room for them in Markdown."""
    elements: list[doc.Element] = []
    for table in tables:
        if table.remarks:
            texts = (f"! {said.text}" if said.serious else said.text for said in table.remarks)
            elements += [
                doc.Paragraph(doc.Span(f"{table.name}:")),
                doc.Items(tuple(map(doc.Span, texts))),
            ]
    return tuple(elements)


def _verification(points: Sequence[PointStatus]) -> tuple[doc.Element, ...]:
    lines = verification_lines(points)
    said = (doc.Span(f"! {line}" if serious else line) for line, serious in lines)
    return (doc.Items(tuple(said)),) if lines else ()


def _problems(points: Sequence[PointStatus]) -> tuple[doc.Element, ...]:
    counts = tuple(doc.Column(name, "number") for name in ("passed", "failed", "skipped"))
    reason = doc.Column("reason", "prose")
    rows = [
        (str(point.passed), str(point.failed), str(point.skipped), doc.Span(point.reason))
        for point in points
    ]
    names = [(doc.Span(point.point), doc.Span(point.point_id, "dim")) for point in points]
    together = (
        doc.Row(((name, " ", point_id), *row))
        for (name, point_id), row in zip(names, rows, strict=True)
    )
    apart = (doc.Row((*name, *row)) for name, row in zip(names, rows, strict=True))
    return (
        doc.Only("html", (doc.Table((doc.Column("point"), *counts, reason), tuple(together)),)),
        doc.Only(
            "markdown",
            (doc.Table((doc.Column("point"), doc.Column("id"), *counts, reason), tuple(apart)),),
        ),
        *(_failure(point, failure) for point in points for failure in point.failures),
    )


def _failure(point: PointStatus, failure: Failure) -> doc.Element:
    """Returns one way in which repeats failed, with what is known of it below."""
    several = "repeats" if len(failure.repeats) > 1 else "repeat"
    which = f"{several} {listed(failure.repeats, most=10)}"
    said = doc.Span(f"{point.point} {which}: {failure.error.said}")
    shown = failure.error.shown.strip()
    return doc.Details(said, (doc.Code(shown),)) if shown else doc.Paragraph(said)


def _notes(info: RunInfo, summary: RunSummary) -> tuple[doc.Element, ...]:
    skipped = [f"skipped {skip.point.name}: {skip.reason}" for skip in info.expansion.skipped]
    flags = [
        f"{point.point} {point.point_id}: {point.flag}"
        for point in summary.points
        if point.flag is not None
    ]
    flags += [
        f"{point.point} {point.point_id}: {not_alone(point)}"
        for point in summary.points
        if point.not_alone
    ]
    left_out = [f"left out: {line}" for line in summary.left_out]
    others = (*filter(None, [traced_line(summary.points)]), *info.expansion.notes)
    html = (*skipped, *flags, *left_out, *others)
    markdown = (*skipped, *(f"! {text}" for text in (*flags, *left_out)), *others)
    if not html:
        return ()
    return (
        doc.Only("html", (doc.Items(tuple(map(doc.Span, html))),)),
        doc.Only("markdown", (doc.Items(tuple(map(doc.Span, markdown))),)),
    )


def provenance_facts(
    example: Record | None, hosts: Sequence[str], points: Sequence[PointStatus]
) -> dict[str, str]:
    """Returns the hardware and software of the run, as label and text."""
    if example is None:
        return {}
    provenance = example.provenance
    host, devices, git = (_mapping(provenance.get(name)) for name in ("host", "devices", "git"))
    versions = _mapping(provenance.get("versions"))
    facts = {
        "host": f"{host['name']}, {host['cpu']}, {host['cpu_count']} CPUs, "
        f"{_memory(host['memory_bytes'])} memory",
        **({"hosts": "; ".join(hosts)} if hosts else {}),
        "kernel": str(host["kernel"]),
        "versions": ", ".join(f"{name} {v}" for name, v in versions.items()) or UNKNOWN,
        "code under test": example.code.words,
        "orbax-bench": f"{git['commit']}, dirty: {git['dirty']}",
    }
    if devices:
        facts["devices"] = f"{devices['count']} x {devices['kind']} ({devices['platform']})"
    sizes = {
        point.checkpoint: doc.num_bytes(point.checkpoint_bytes)
        for point in points
        if point.checkpoint_bytes is not None
    }
    if sizes:
        every = [f"{name} {size}" for name, size in sizes.items()]
        alike = len(set(sizes.values())) == 1
        facts["checkpoint size"] = next(iter(sizes.values())) if alike else ", ".join(every)
    return facts


def _memory(said: object) -> str:
    return doc.num_bytes(said) if isinstance(said, int) and 0 <= said < 2**63 else UNKNOWN


def _mapping(part: object) -> collections.defaultdict[str, object]:
    """Returns a part of a provenance, in which what it does not say is unknown."""
    said = part if isinstance(part, dict) else {}
    return collections.defaultdict(lambda: UNKNOWN, said)


_TRUSTED: Final = ("saved", "reference")
"""So many points are named; of more, the rest is counted."""


def verification_lines(points: Iterable[PointStatus]) -> list[tuple[str, bool]]:
    """Returns a line per object of comparison, and whether it says that something is not verified.

    Points that are not verified are named. Points of which no repeat passed are left out.
    """
    names: dict[Verified, list[str]] = {word: [] for word in VERIFIED_WORDS}
    for point in points:
        if point.passed:
            names[point.verified].append(f"{point.point} {point.point_id}")
    return [(_line(word, found), word not in _TRUSTED) for word, found in names.items() if found]


def _line(word: Verified, names: list[str]) -> str:
    count = f"{len(names)} point{'' if len(names) == 1 else 's'}"
    if word in _TRUSTED:
        return f"{count} {VERIFIED_WORDS[word]}"
    return f"{count} {VERIFIED_WORDS[word]}: {listed(names, most=8)}"


_NARROW: Final = 80
"""Columns of a terminal that has not been made wider."""


def terminal_document(
    info: RunInfo,
    summary: RunSummary,
    extra: ExtraColumns = NO_EXTRA,
    answer: doc.Document | None = None,
) -> doc.Document:
    """What a terminal shows of the summary of a run; `summary_document` has the page too."""
    above = () if answer is None else answer.brief or answer.elements
    elements = (*shared_warning(summary.points), *above, *summary_elements(summary, extra))
    return doc.Document(title=info.suite_name, elements=elements, escape=False)


def metrics_document(summary: RunSummary) -> doc.Document:
    """Returns every metric of a summary by point and operation, for a terminal."""
    elements: list[doc.Element] = []
    for (point_id, point), of_point in itertools.groupby(
        summary.metrics, key=lambda metric: (metric.point_id, metric.point)
    ):
        rows: list[doc.Row] = []
        by_operation: dict[str, list[MetricSummary]] = {}
        for metric in of_point:
            by_operation.setdefault(metric.operation, []).append(metric)
        for operation, found in by_operation.items():
            rows.append(doc.Row((doc.Span(operation, strong=True), "", "", "", "")))
            for metric in found:
                numbers = map(doc.digits, (metric.median, metric.minimum, metric.maximum))
                name = doc.Span(f" {metric.metric}")
                rows.append(doc.Row((name, *map(doc.Span, numbers), doc.Span(metric.unit))))
        numeric = (doc.Column(name, "number") for name in ("median", "min", "max"))
        columns = (doc.Column("metric", apart=True), *numeric, doc.Column("unit"))
        elements += [
            doc.Paragraph((doc.Span(point, strong=True), " ", doc.Span(point_id, "dim"))),
            doc.Table(columns, tuple(rows), indented=True, ruled=False),
        ]
    return doc.Document(title="Metrics", elements=tuple(elements))


def notes_document(info: RunInfo) -> doc.Document:
    """Returns the notes of a suite, and the combinations that are skipped."""
    notes = [wrapped("note:", "unsure", note) for note in info.expansion.notes]
    notes += [
        wrapped("skipped:", "unsure", f"{skip.point.name}: {skip.reason}")
        for skip in info.expansion.skipped
    ]
    return doc.Document(title=info.suite_name, elements=tuple(notes))


def summary_elements(
    summary: RunSummary, extra: ExtraColumns = NO_EXTRA
) -> tuple[doc.Element, ...]:
    """Returns the terminal's text: every operation, then those that failed or were skipped."""
    elements: list[doc.Element] = []
    extra = with_measured(summary, extra)
    tables = point_tables(summary, extra)
    if tables:
        legend = (
            "Median, interquartile spread over the median, fastest and slowest of n repeats, each "
            "on its slowest host; GiB/s is all bytes over all seconds."
        )
        elements.append(_fitting(tables, extra))
        elements += [
            doc.Paragraph(said, "dim", fold="wrapped")
            for said in (legend, extra.legend, _other_cache(summary))
            if said
        ]
    if not summary.points:
        elements.append(doc.Paragraph("No repeat has a record yet."))
    for line, serious in verification_lines(summary.points):
        mark = doc.Span("!", "bad") if serious else ""
        elements.append(doc.Paragraph(doc.Span(line), "plain" if serious else "dim", mark=mark))
    for said in filter(None, [effects_line(summary.points), traced_line(summary.points)]):
        elements.append(doc.Paragraph(doc.Span(said), "dim", fold="wrapped"))
    for point in summary.points:
        name = f"{point.point} {point.point_id}"
        if point.flag is not None:
            elements.append(
                doc.Paragraph(doc.Span(f"{name}: {point.flag}"), mark=doc.Span("!", "bad"))
            )
        if point.not_alone:
            elements.append(
                doc.Paragraph(doc.Span(f"{name}: {not_alone(point)}"), mark=doc.Span("!", "bad"))
            )
        if point.failed:
            total = point.failed + point.passed + point.skipped
            said = f"{name}: {point.failed} of {total} repeats: {point.reason}"
            elements.append(wrapped("failed:", "bad", said))
        elif point.skipped:
            elements.append(wrapped("skipped:", "unsure", f"{name}: {point.reason}"))
    elements += retried_lines(summary.points)
    elements += [wrapped("left out:", "bad", line) for line in summary.left_out]
    if summary.points and not summary.measured:
        elements.append(doc.Paragraph("Nothing was measured."))
    return tuple(elements)


def _fitting(tables: Sequence[PointTable], extra: ExtraColumns) -> doc.Element:
    """Returns the operations of all points for a terminal: where it is narrow, in fewer columns."""
    every = headings(extra)
    lines = [every, *(row for table in tables for row in table.rows)]
    wide = {
        heading: 2 + max(map(len, column))
        for heading, column in zip(every, zip(*lines, strict=True), strict=True)
    }
    # Those that may be left out, the last to go first: each stays that still has room.
    others = [name for name in reversed(extra.headings) if name not in MEASURED]
    ranked = [*MEASURED, *others, "max", "min"]
    kept = {heading for heading in every if heading not in ranked}
    for heading in ranked:
        if heading in wide and sum(wide[shown] for shown in (*kept, heading)) <= _NARROW:
            kept.add(heading)
    whole = operations_table(tables, extra)
    if len(kept) == len(every):
        return whole
    rest = ", ".join(heading for heading in every if heading not in kept)
    told = doc.Paragraph(
        f"Not shown, because the terminal is narrow: {rest}; report.html has all.", "dim"
    )
    return doc.ByWidth(sum(wide.values()), (whole,), (whole.only(kept), told))
