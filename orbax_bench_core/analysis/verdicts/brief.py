"""Verdicts in a terminal: tables with advice where it is wide, and lines where it is narrow."""

from collections.abc import Sequence
from typing import Final

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.verdicts import words
from orbax_bench_core.analysis.verdicts.headlines import (
    compared,
    headline,
    nearest_to_trouble,
    primary_first,
    worst_first,
)
from orbax_bench_core.analysis.verdicts.metrics import MetricsShown, metric_lines, note_of
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict, VerdictReport
from orbax_bench_core.analysis.verdicts.words import finding, unmatched_line

MANY: Final = 8
"""Number of points above which those that pass have one line each."""

_WIDE: Final = 110
"""Columns from which on a terminal has room for advice beside the numbers."""

_HEADINGS: Final = ("operation", "95 % interval", "ratio", "verdict")
_SAID_ALREADY: Final = "exploratory: "


def brief_elements(report: VerdictReport, metrics: MetricsShown) -> tuple[doc.Element, ...]:
    """Returns the terminal's text of verdicts, with the metrics that `metrics` names."""
    points = worst_first(report.points)
    short = [point for point in points if len(points) > MANY and point.word == "PASS"]
    long = points[: len(points) - len(short)]
    rows = [_cells(operation, point) for point in long for operation in primary_first(point)]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    elements: list[doc.Element] = []
    for point in long:
        elements += _point(point, widths)
    if short:
        stamp = EXPLORATORY if report.exploratory else ""
        passed = doc.Span(f"{len(short)} points pass{stamp}", strong=True)
        elements.append(_hanging((passed, ", each with its highest ratio:")))
        elements += _passes(short)
    elements += [
        _hanging(doc.Span(unmatched_line(point)), mark=doc.Span("!", "unsure"))
        for point in report.unmatched
    ]
    elements += _metrics(long, metrics)
    elements += [
        _hanging(doc.Span(note), mark=doc.Span("note:", "unsure")) for note in report.remarks
    ]
    if not all(operation.primary for point in long for operation in point.operations):
        aside = "In (parentheses): operations that are not primary; they decide nothing."
        elements.append(_hanging(doc.Span(aside, "dim")))
    apart = all(point.mode == "unpaired" for point in report.points)
    ratio = (
        f"Ratio{' of medians' if apart else ''}: candidate ({report.candidate}) over baseline "
        f"({report.baseline}); above 1 is slower."
    )
    return (
        *elements,
        _hanging(doc.Span(ratio, "dim")),
        _hanging(
            (verdict_word(report), doc.Span(f": {headline(report).removeprefix(_SAID_ALREADY)}"))
        ),
    )


def _point(point: PointVerdict, widths: Sequence[int]) -> list[doc.Element]:
    """Returns the name and verdict of a point, then its operations in columns of all points."""
    about = doc.Span(particulars(point), "dim")
    title = (doc.Span(point.point, strong=True), " ", about)
    elements: list[doc.Element] = [_hanging(title, mark=verdict_word(point))]
    mark = doc.Span("failed:", "bad") if point.failed else doc.Span("note:", "dim")
    for remark in words.remarks(point):
        elements.append(_hanging((mark, " ", doc.Span(remark)), indent=2))
        mark = doc.Span("note:", "dim")
    operations = primary_first(point)
    wide = (_wide_table(point, widths),) if operations else ()
    narrow = (*_lines(point, widths), *_advice(point))
    table = doc.ByWidth(_WIDE, wide, narrow, terminal=True)
    return [*elements, table, doc.BLANK]


def _metrics(points: Sequence[PointVerdict], shown: MetricsShown) -> list[doc.Element]:
    """Returns metrics of points, which decide nothing, for below all of their verdicts."""
    elements: list[doc.Element] = []
    for point in points:
        lines = metric_lines(point, shown)
        if lines and len(points) > 1:
            name = (doc.Span(point.point, strong=True), " ", doc.Span(point.point_id, "dim"))
            elements.append(_hanging(name))
        elements += [*lines, doc.BLANK] if lines else []
    every = [metric for point in points for metric in point.metrics]
    return [*elements, _hanging(doc.Span(note_of(every), "dim"))] if elements else []


def _wide_table(point: PointVerdict, widths: Sequence[int]) -> doc.Table:
    columns = (
        doc.Column(heading, "number" if heading == "ratio" else "text", width=width)
        for heading, width in zip(_HEADINGS, widths, strict=True)
    )
    rows = (
        doc.Row(
            (
                *map(doc.Span, numbers_of(operation)),
                operation_word(operation, point),
                doc.Cell(doc.Span(advice_on(operation, point)), tuple(words.flags(operation))),
            ),
            dim=not operation.primary,
        )
        for operation in primary_first(point)
    )
    return doc.Table((*columns, doc.Column("what to do")), tuple(rows), indented=True, ruled=False)


def _lines(point: PointVerdict, widths: Sequence[int]) -> list[doc.Element]:
    elements: list[doc.Element] = []
    for operation in primary_first(point):
        name, interval, ratio = numbers_of(operation)
        numbers = f"{name:{widths[0]}}  {interval:{widths[1]}}  {ratio:>{widths[2]}}  "
        role: doc.Role = "plain" if operation.primary else "dim"
        elements.append(_hanging((numbers, operation_word(operation, point)), role, indent=2))
        elements += [
            _hanging(doc.Span(flag), role, indent=4, mark=doc.Span("!", "unsure"))
            for flag in words.flags(operation)
        ]
    return elements


def _advice(point: PointVerdict) -> list[doc.Element]:
    """Returns each advice with the operations that it is for, primary ones only if they pass."""
    given: dict[str, list[str]] = {}
    for operation in primary_first(point):
        advice = advice_on(operation, point)
        if advice and (operation.primary or operation.verdict.word != "PASS"):
            given.setdefault(advice, []).append(operation.operation)
    return [
        _hanging(doc.Span(f"{', '.join(names)}: {advice}"), indent=2, mark="→")
        for advice, names in given.items()
    ]


def _passes(points: Sequence[PointVerdict]) -> list[doc.Element]:
    """Returns points that pass on one line each, with their numbers in columns."""
    cells = [_nearest_cells(point) for point in points]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    elements: list[doc.Element] = []
    for point, numbers in zip(points, cells, strict=True):
        padded = (cell.ljust(width) for cell, width in zip(numbers, widths, strict=True))
        flagged = sum(len(words.flags(operation)) for operation in point.operations)
        flags = f" ! {flagged} flag{'' if flagged == 1 else 's'}" if flagged else ""
        name = (
            doc.Span(point.point),
            " ",
            doc.Span(point.point_id, "dim"),
            doc.Span(flags, "unsure"),
        )
        mark = (verdict_word(point), doc.Span(f" {'  '.join(padded)}".rstrip()))
        elements.append(_hanging(name, indent=2, mark=mark))
    return elements


def _nearest_cells(point: PointVerdict) -> tuple[str, ...]:
    nearest = nearest_to_trouble(point)
    unpaired = "unpaired" if point.mode == "unpaired" else ""
    return (*(("", "", "") if nearest is None else numbers_of(nearest)), unpaired)


def _cells(operation: OperationVerdict, point: PointVerdict) -> tuple[str, ...]:
    """Returns an operation as cells with the columns of `_HEADINGS`."""
    return (*numbers_of(operation), operation_word(operation, point).text)


def _hanging(
    text: doc.Text, role: doc.Role = "plain", *, indent: int = 0, mark: doc.Text = ""
) -> doc.Paragraph:
    return doc.Paragraph(text, role, mark=mark, indent=indent, fold="hanging")


EXPLORATORY: Final = ", exploratory"
"""Follows each word of what was judged by other rules than those of its run."""
_PROVES_NOTHING: Final = (
    "Rules that are chosen after the data prove nothing: to decide by them, measure again with "
    "them in another output directory."
)


def particulars(point: PointVerdict) -> str:
    """Returns the id of a point, how it was measured, and what decided its verdict."""
    return ", ".join(filter(None, [point.point_id, words.design(point), words.decided(point)]))


def numbers_of(operation: OperationVerdict) -> tuple[str, str, str]:
    """Returns name, interval and ratio: what is known stands before the best guess."""
    verdict = operation.verdict
    cache = f" ({operation.cache})" if operation.cache else ""
    return f"{operation.operation}{cache}", words.interval(verdict), words.ratio(verdict.ratio)


def operation_word(
    operation: OperationVerdict, point: PointVerdict, *, strong: bool = False
) -> doc.Span:
    """Returns the verdict of an operation; one that decides nothing is in parentheses."""
    word = operation.verdict.word
    how = " unpaired" if point.mode == "unpaired" else ""
    how += EXPLORATORY if point.exploratory else ""
    if word != "PASS" and operation.verdict.endpoint == "stalls":
        how += ": stalls"
    if point.is_study:
        return doc.Span(
            words.compared_word(operation.verdict) + how, strong=strong and operation.primary
        )
    said = f"{words.MARKS[word]} {words.word_of(operation)}{how}"
    stands_out = operation.primary and (strong or word == "REGRESSION")
    return doc.Span.judged(word, said, strong=stands_out)


def verdict_word(judged: PointVerdict | VerdictReport, *, strong: bool = False) -> doc.Span:
    """Returns the verdict of a point or of a report."""
    if judged.is_study:
        return doc.Span(stamped(judged), strong=True)
    word = judged.word
    stands_out = strong or word == "REGRESSION"
    return doc.Span.judged(word, f"{words.MARKS[word]} {stamped(judged)}", strong=stands_out)


def stamped(judged: PointVerdict | VerdictReport) -> str:
    """Returns a word that nobody who sees it alone takes for a verdict when it is none."""
    word = words.STUDY if judged.is_study else judged.word
    return f"{word}{EXPLORATORY if judged.exploratory else ''}"


def meaning_of(report: VerdictReport) -> str:
    """Returns the meaning of a report's word."""
    return words.STUDY_MEANING if report.is_study else words.MEANINGS[report.word]


def advice_on(operation: OperationVerdict, point: PointVerdict) -> str:
    """Returns finding and advice; what an exploration found keeps no promise of false alarms."""
    if point.exploratory:
        return f"Exploratory: {finding(operation)} {_PROVES_NOTHING}"
    if point.is_study:
        return f"{compared(operation, point)}."
    return words.what_to_do(operation)
