"""Document of verdicts: the worst point first, advice, figures, and how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.verdicts import words
from orbax_bench_core.analysis.verdicts.figures import figure_files, page_figures, plotted_points
from orbax_bench_core.analysis.verdicts.findings import finding
from orbax_bench_core.analysis.verdicts.metrics import (
    NOTE,
    MetricsShown,
    metric_lines,
    metric_table,
)
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict, VerdictReport
from orbax_bench_core.analysis.verdicts.words import (
    headline,
    nearest_to_trouble,
    primary_first,
    unmatched_line,
    worst_first,
)
from orbax_bench_core.document import (
    BLANK,
    ByWidth,
    Callout,
    Cell,
    Column,
    Details,
    Document,
    Element,
    Facts,
    Filter,
    Group,
    Heading,
    Items,
    Only,
    Paragraph,
    Role,
    Row,
    Section,
    Span,
    Table,
    Text,
)
from orbax_bench_core.gate import Word

WIDE: Final = 110
"""Columns from which on a terminal has room for advice beside the numbers."""

MANY: Final = 8
"""Number of points above which those that pass have one line each."""

_ROLES: Final[dict[Word, Role]] = {"REGRESSION": "bad", "INCONCLUSIVE": "unsure", "PASS": "good"}
_HEADINGS: Final = ("operation", "95 % interval", "ratio", "verdict")
_EXPLORATORY: Final = ", exploratory"
"""Follows each word of what was judged by other rules than those of its run."""
_SAID_ALREADY: Final = "exploratory: "
_PROVES_NOTHING: Final = (
    "Rules that are chosen after the data prove nothing: to decide by them, measure anew with them "
    "in another output directory."
)
_FEW: Final = 4
"""Number of points from which on HTML folds the figures of those that pass."""

_FIGURES: Final = (
    "Figures: the first of each point has every operation on one axis, with its 95 % interval "
    "(hollow: not primary). Below it are, for each primary operation, the ratio of every block in "
    "the order measured, and the times of both arms; for a point that passes among many, only for "
    "the operation nearest to trouble. A dashed line through times is a drift; hollow marks are "
    "the slow one of two regimes; rings are stalls, above the dotted line; a cross on the axis is "
    "an attempt that failed. Where every slot of a block was a life, a line joins the operations "
    "of each."
)


def verdicts_document(report: VerdictReport, metrics: MetricsShown = "changed") -> Document:
    """Returns verdicts for people.

    A page has figures, of the worst points only where there are very many. A wide terminal shows
    a table with advice beside the numbers; a narrow one, or what is no terminal, plain lines. When
    there are many points, those that pass have one line each there. A page has every metric, a
    terminal those that `metrics` says.
    """
    return Document(
        title=f"{_stamped(report)}: {report.suite}",
        elements=_page(report),
        brief=_brief(report, metrics),
    )


def _page(report: VerdictReport) -> tuple[Element, ...]:
    points = worst_first(report.points)
    meanings = words.MEANINGS.items()
    unmatched = tuple(Span(unmatched_line(point)) for point in report.unmatched)
    rules = tuple(map(Span, words.rules(report.gate)))
    described = (f"{word}: {meaning}" for word, meaning in meanings)
    coloured = (
        (Span(word, _ROLES[word], strong=True), f": {meaning}") for word, meaning in meanings
    )
    return (
        Only("html", _html_head(report)),
        Only("markdown", _markdown_head(report)),
        Heading("Verdicts"),
        *((_filter(points),) if len(points) > MANY else ()),
        *(_tables(points) if points else (Paragraph("There is no verdict."),)),
        Section("Points without a partner", (Items(unmatched),) if unmatched else ()),
        Section("Notes", (Items(report.remarks),) if report.remarks else ()),
        Only("html", (Section("Metrics", _metrics(points)),)),
        Only("html", (Section("Figures", _drawings(report, points)),)),
        Only("markdown", tuple(_point_section(report, point) for point in points)),
        Heading("How to read this"),
        Only("html", (Items((*coloured, *words.READING, _FIGURES)),)),
        Only("markdown", (Items((*described, *words.READING)),)),
        Section("The rules that were applied", (Items(rules),)),
    )


def _html_head(report: VerdictReport) -> tuple[Element, ...]:
    judged = f", judged {report.judged_at:%Y-%m-%d %H:%M} UTC"
    run = ("Candidate against baseline, run ", Span(report.run_id, code=True), judged)
    return (
        Heading(Span(report.suite), level=1),
        Paragraph(run, "dim"),
        Callout(_word(report), Span(headline(report))),
        Facts(
            (
                ("verdict", f"{_stamped(report)}: {words.MEANINGS[report.word]}"),
                ("baseline", Span(report.baseline)),
                ("candidate", Span(report.candidate)),
            )
        ),
    )


def _markdown_head(report: VerdictReport) -> tuple[Element, ...]:
    judged = f", judged {report.judged_at:%Y-%m-%d %H:%M} UTC"
    return (
        Heading((_word(report), f": {report.suite}"), level=1),
        Paragraph(headline(report)),
        Facts(
            (
                ("verdict", f"{_stamped(report)}, that is, {words.MEANINGS[report.word]}"),
                ("baseline", Span(report.baseline, code=True)),
                ("candidate", Span(report.candidate, code=True)),
                ("run", (Span(report.run_id, code=True), judged)),
            )
        ),
    )


def _filter(points: Sequence[PointVerdict]) -> Filter:
    names = {point.point_id: f"{point.point} {point.point_id}" for point in points}
    return Filter("points", names, {"verdict": {one.point_id: one.word for one in points}})


def _tables(points: Sequence[PointVerdict]) -> tuple[Element, ...]:
    columns = (
        Column("metric"),
        Column("95 % interval", "fixed"),
        Column("ratio", "number"),
        Column("verdict", "fixed"),
        Column("what to do", "prose"),
    )
    html = tuple(map(_html_group, points))
    markdown = tuple(map(_markdown_group, points))
    return (
        Only("html", (Table(columns, groups=html),)),
        Only("markdown", (Table(columns, groups=markdown, keys=("point",)),)),
    )


def _html_group(point: PointVerdict) -> Group:
    about = _about(point)
    rows = (
        Row(
            (
                *map(Span, _numbers(operation)),
                _word_cell(operation, point, strong=True),
                Cell(_what_to_do(operation, point), tuple(words.flags(operation))),
            ),
            dim=not operation.primary,
        )
        for operation in primary_first(point)
    )
    return Group(
        label=(_word(point), " ", Span(point.point), " ", Span(about, "dim")),
        rows=tuple(rows),
        intro=tuple(map(Paragraph, _remarks(point))),
        key=point.point_id,
    )


def _markdown_group(point: PointVerdict) -> Group:
    """Returns the rows of a point; one without operations has a row that says why."""
    rows = []
    for operation in primary_first(point):
        name, *numbers = _numbers(operation)
        cells = (*map(Span, numbers), _word_cell(operation, point))
        rows.append(Row((Span(name, code=True), *cells, _what_to_do(operation, point))))
    nothing = Row(("–", "–", "–", _word(point), " ".join(words.remarks(point))))
    return Group(
        label=Span(point.point),
        keys=(Span(point.point, code=True),),
        rows=tuple(rows) or (nothing,),
    )


def _about(point: PointVerdict) -> str:
    return ", ".join(filter(None, [point.point_id, words.design(point), words.decided(point)]))


def _metrics(points: Sequence[PointVerdict]) -> tuple[Element, ...]:
    return tuple(
        Details(
            (Span(point.point), Span(f" {len(point.metrics)} metrics", "dim")), metric_table(point)
        )
        for point in points
        if point.metrics
    )


def _remarks(point: PointVerdict) -> list[str]:
    remarks = words.remarks(point)
    return [f"failed: {remarks[0]}", *remarks[1:]] if point.failed and remarks else remarks


def _drawings(report: VerdictReport, points: Sequence[PointVerdict]) -> tuple[Element, ...]:
    plotted = plotted_points(report)
    elements: list[Element] = []
    for point in plotted:
        summary = (_word(point, strong=True), " ", Span(point.point))
        opened = point.word != "PASS" or len(points) < _FEW
        elements.append(Details(summary, tuple(page_figures(report, point)), open=opened))
    if len(plotted) < len(points):
        bare = f"{len(points) - len(plotted)} more points have no figures here"
        elements.append(Paragraph(f"{bare}; their numbers are in the table above.", "dim"))
    return tuple(elements)


def _point_section(report: VerdictReport, point: PointVerdict) -> Section:
    """Returns what Markdown says of a point below the table, if there is anything to say."""
    items: list[Text] = list(_remarks(point))
    for operation in primary_first(point):
        name = Span(operation.operation, code=True)
        items += [("! ", name, f" {flag}") for flag in words.flags(operation)]
    figures = figure_files(report, point) if point in plotted_points(report) else ()
    decided = words.decided(point)
    about = f"{_stamped(point)}{f' ({decided})' if decided else ''}, {words.design(point)}, id "
    return Section(
        (f"{words.MARKS[point.word]} ", Span(point.point, code=True)),
        (*((Items(tuple(items)),) if items else ()), *figures, *metric_table(point)),
        lead=(Paragraph((about, Span(point.point_id, code=True))),),
    )


def _brief(report: VerdictReport, metrics: MetricsShown) -> tuple[Element, ...]:
    points = worst_first(report.points)
    short = [point for point in points if len(points) > MANY and point.word == "PASS"]
    long = points[: len(points) - len(short)]
    rows = [_cells(operation, point) for point in long for operation in primary_first(point)]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    elements: list[Element] = []
    for point in long:
        elements += _brief_point(point, widths, metrics)
    if short:
        stamp = _EXPLORATORY if report.exploratory else ""
        passed = Span(f"{len(short)} points pass{stamp}", strong=True)
        elements.append(_hanging((passed, ", each with its highest ratio:")))
        elements += _brief_passes(short)
    elements += [
        _hanging(Span(unmatched_line(point)), mark=Span("!", "unsure"))
        for point in report.unmatched
    ]
    elements += [_hanging(Span(note), mark=Span("note:", "unsure")) for note in report.remarks]
    if not all(operation.primary for point in long for operation in point.operations):
        aside = "In (parentheses): operations that are not primary; they decide nothing."
        elements.append(_hanging(Span(aside, "dim")))
    noted = metrics != "none" and any(point.metrics for point in long)
    ratio = (
        f"Ratio: candidate ({report.candidate}) over baseline ({report.baseline}); above 1 is "
        "slower."
    )
    return (
        *elements,
        *((_hanging(Span(NOTE, "dim")),) if noted else ()),
        _hanging(Span(ratio, "dim")),
        _hanging((_word(report), Span(f": {headline(report).removeprefix(_SAID_ALREADY)}"))),
    )


def _brief_point(
    point: PointVerdict, widths: Sequence[int], metrics: MetricsShown
) -> list[Element]:
    """Returns the name and verdict of a point, then its operations in columns of all points."""
    about = Span(_about(point), "dim")
    title = (Span(point.point, strong=True), " ", about)
    elements: list[Element] = [_hanging(title, mark=_word(point))]
    mark = Span("failed:", "bad") if point.failed else Span("note:", "dim")
    for remark in words.remarks(point):
        elements.append(_hanging((mark, " ", Span(remark)), indent=2))
        mark = Span("note:", "dim")
    operations = primary_first(point)
    wide = (_wide_table(point, widths),) if operations else ()
    narrow = (*_lines(point, widths), *_advice(point))
    table = ByWidth(WIDE, wide, narrow, terminal=True)
    return [*elements, table, *metric_lines(point, metrics), BLANK]


def _wide_table(point: PointVerdict, widths: Sequence[int]) -> Table:
    columns = (
        Column(heading, "number" if heading == "ratio" else "text", width=width)
        for heading, width in zip(_HEADINGS, widths, strict=True)
    )
    rows = (
        Row(
            (
                *map(Span, _numbers(operation)),
                _word_cell(operation, point),
                Cell(Span(_what_to_do(operation, point)), tuple(words.flags(operation))),
            ),
            dim=not operation.primary,
        )
        for operation in primary_first(point)
    )
    return Table((*columns, Column("what to do")), tuple(rows), indented=True, ruled=False)


def _lines(point: PointVerdict, widths: Sequence[int]) -> list[Element]:
    elements: list[Element] = []
    for operation in primary_first(point):
        name, interval, ratio = _numbers(operation)
        numbers = f"{name:{widths[0]}}  {interval:{widths[1]}}  {ratio:>{widths[2]}}  "
        role: Role = "plain" if operation.primary else "dim"
        elements.append(_hanging((numbers, _word_cell(operation, point)), role, indent=2))
        elements += [
            _hanging(Span(flag), role, indent=4, mark=Span("!", "unsure"))
            for flag in words.flags(operation)
        ]
    return elements


def _advice(point: PointVerdict) -> list[Element]:
    """Returns each advice with the operations that it is for, primary ones only if they pass."""
    given: dict[str, list[str]] = {}
    for operation in primary_first(point):
        advice = _what_to_do(operation, point)
        if advice and (operation.primary or operation.verdict.word != "PASS"):
            given.setdefault(advice, []).append(operation.operation)
    return [
        _hanging(Span(f"{', '.join(names)}: {advice}"), indent=2, mark="→")
        for advice, names in given.items()
    ]


def _brief_passes(points: Sequence[PointVerdict]) -> list[Element]:
    """Returns points that pass on one line each, with their numbers in columns."""
    cells = [_brief_cells(point) for point in points]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    elements: list[Element] = []
    for point, numbers in zip(points, cells, strict=True):
        padded = (cell.ljust(width) for cell, width in zip(numbers, widths, strict=True))
        flagged = sum(len(words.flags(operation)) for operation in point.operations)
        flags = f" ! {flagged} flag{'' if flagged == 1 else 's'}" if flagged else ""
        name = (Span(point.point), " ", Span(point.point_id, "dim"), Span(flags, "unsure"))
        mark = (_word(point), Span(f" {'  '.join(padded)}".rstrip()))
        elements.append(_hanging(name, indent=2, mark=mark))
    return elements


def _brief_cells(point: PointVerdict) -> tuple[str, ...]:
    nearest = nearest_to_trouble(point)
    unpaired = "unpaired" if point.mode == "unpaired" else ""
    return (*(("", "", "") if nearest is None else _numbers(nearest)), unpaired)


def _cells(operation: OperationVerdict, point: PointVerdict) -> tuple[str, ...]:
    """Returns an operation as cells with the columns of `_HEADINGS`."""
    return (*_numbers(operation), _word_cell(operation, point).text)


def _numbers(operation: OperationVerdict) -> tuple[str, str, str]:
    """Returns name, interval and ratio: what is known stands before the best guess."""
    verdict = operation.verdict
    return operation.operation, words.interval(verdict), words.ratio(verdict.ratio)


def _word_cell(operation: OperationVerdict, point: PointVerdict, *, strong: bool = False) -> Span:
    word = operation.verdict.word
    how = " unpaired" if point.mode == "unpaired" else ""
    how += _EXPLORATORY if point.exploratory else ""
    if word != "PASS" and operation.verdict.endpoint == "stalls":
        how += ": stalls"
    said = f"{words.MARKS[word]} {words.word_of(operation)}{how}"
    stands_out = operation.primary and (strong or word == "REGRESSION")
    return Span(said, _ROLES[word], strong=stands_out)


def _word(judged: PointVerdict | VerdictReport, *, strong: bool = False) -> Span:
    word = judged.word
    stands_out = strong or word == "REGRESSION"
    return Span(f"{words.MARKS[word]} {_stamped(judged)}", _ROLES[word], strong=stands_out)


def _stamped(judged: PointVerdict | VerdictReport) -> str:
    """Returns a word that nobody who sees it alone takes for a verdict when it is none."""
    return f"{judged.word}{_EXPLORATORY if judged.exploratory else ''}"


def _what_to_do(operation: OperationVerdict, point: PointVerdict) -> str:
    """Returns finding and advice; what an exploration found keeps no promise of false alarms."""
    if point.exploratory:
        return f"Exploratory: {finding(operation)} {_PROVES_NOTHING}"
    return words.what_to_do(operation)


def _hanging(text: Text, role: Role = "plain", *, indent: int = 0, mark: Text = "") -> Paragraph:
    return Paragraph(text, role, mark=mark, indent=indent, fold="hanging")
