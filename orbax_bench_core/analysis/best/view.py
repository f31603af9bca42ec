"""Documents of a choice: the section of a report, the page of the command, and its drawings."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.best import model, words
from orbax_bench_core.document import figures
from orbax_bench_core.errors import command, listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_BRIEF_EFFECTS: Final = 4
_BRIEF_CASES: Final = 4
_BRIEF_REASONS: Final = 3
_BRIEF_PLACES: Final = 12
_MOST_ROWS: Final = 50
_MOST_FIGURES: Final = 10
_CHOSEN: Final = "chosen"


def best_document(best: model.Best) -> doc.Document:
    """Returns the answer of the command: on a terminal with code and evidence, on pages in full."""
    title = f"Best options: {best.suite}"
    brief = [part for case in best.cases for part in _answer(case, best.goal)]
    return doc.Document(
        title=title,
        elements=(doc.Heading(doc.Span(title), level=1), *_elements(best)),
        brief=tuple(brief),
        escape=False,
    )


def best_section(best: model.Best, place: str) -> doc.Document | None:
    """Returns the text above the tables of a sweep, or None if there is nothing to choose."""
    if not best.cases:
        return None
    elements, brief = _elements(best), _brief(best, place)
    return doc.Document(title=best.suite, elements=elements, brief=brief, escape=False)


def _elements(best: model.Best) -> tuple[doc.Element, ...]:
    elements: list[doc.Element] = []
    for number, case in enumerate(best.cases):
        elements += _case(case, best.goal, figures=number < _MOST_FIGURES)
    reading = doc.Details(
        "How to read this choice", (doc.Items(tuple(words.READING.splitlines())),)
    )
    return (*elements, doc.Only("html", (reading,)))


def _brief(best: model.Best, place: str) -> tuple[doc.Element, ...]:
    elements: list[doc.Element] = []
    for case in best.cases[:_BRIEF_CASES]:
        elements.append(_headline(case, best.goal))
        found = case.recommendation
        if found is None:
            left = case.left_out[:_BRIEF_REASONS]
            said = [f"not chosen from: {each.name}: {each.reason}" for each in left]
        else:
            said = [words.ties_sentence(case.ranking), words.risk_sentence(found.confidence)]
            if found.against_defaults is not None:
                said.append(words.against_defaults(found.against_defaults))
        said += [words.effect(each) for each in _largest(case)[:_BRIEF_EFFECTS]]
        said += [f"! {remark}" for remark in case.remarks]
        elements += [_line(line) for line in said]
    more = len(best.cases) - _BRIEF_CASES
    rest = f"{more} more cases, effects" if more > 0 else "Effects"
    elements.append(
        doc.Paragraph(
            doc.Span(f"{rest}, other goals and the code to use it: {command('best', place)}"), "dim"
        )
    )
    return (*elements, doc.BLANK)


def _headline(case: model.Case, goal: model.Goal) -> doc.Paragraph:
    said = doc.Span(
        words.headline(case, goal),
        "good" if words.is_decided(case, goal) else "unsure",
        strong=True,
    )
    return doc.Paragraph((said, " ", doc.Span(case.name, "dim")))


def _line(said: str) -> doc.Paragraph:
    return doc.Paragraph(doc.Span(said), "dim", indent=2, fold="hanging")


def _whole(code: str) -> list[doc.Element]:
    """Returns lines of a terminal that are copied as they are."""
    return [doc.Paragraph(doc.Span(line), fold="whole") for line in code.splitlines()]


def _below(title: str, lines: Sequence[str]) -> list[doc.Element]:
    """Returns lines below a title, on a terminal; nothing without lines."""
    under = (
        doc.Paragraph(doc.Span(text), "dim", mark="-", indent=4, fold="hanging") for text in lines
    )
    return [_line(title), *under] if lines else []


def _answer(case: model.Case, goal: model.Goal) -> list[doc.Element]:
    """Returns a case for a terminal that was asked for nothing else."""
    elements: list[doc.Element] = [
        doc.Paragraph(doc.Span(words.ranked_by(case.ranking)), fold="hanging"),
        _ranking_table(case, case.ranking, _BRIEF_PLACES),
    ]
    elements += [_line(line) for line in words.effect_lines(case)]
    pairs = words.pairs_sentence(case)
    elements += [_line(line) for line in (pairs, *case.effects.unknown, case.effects.why) if line]
    found = case.recommendation
    front = [point for point in case.points if point.point_id in case.front]
    if len(case.front_of) > 1:
        names = listed([f"({words.options(point)})" for point in front])
        elements.append(_line(f"Pareto front of {', '.join(case.front_of)}: {names}"))
    elements += [_line(f"not chosen from: {each.name}: {each.reason}") for each in case.left_out]
    elements += [_line(f"! {remark}") for remark in case.remarks]
    elements += _below("The run says nothing of:", case.not_measured)
    if found is not None:
        chosen = next(each for each in case.points if each.point_id == found.point_id)
        named = words.acting_options(chosen, goal) or words.options(chosen)
        elements += _below(f"What speaks for {named}:", found.evidence)
        differences = words.difference_lines(found)
        if differences:
            elements.append(_line(f"unlike {found.defaults_from}: {'; '.join(differences)}"))
        elif found.code:
            elements.append(_line(f"as {found.defaults_from} does by default"))
        elements += [doc.BLANK, *_whole(found.suite), doc.BLANK]
        for code in (found.code, *found.other_code) if found.code else ():
            elements += [*_whole(code), doc.BLANK]
        if found.why_no_code:
            elements += [_line(f"no code of Orbax: {found.why_no_code}"), doc.BLANK]
    return [*elements, _headline(case, goal), doc.BLANK]


def _case(case: model.Case, goal: model.Goal, *, figures: bool) -> list[doc.Element]:
    found = case.recommendation
    word, _, rest = words.headline(case, goal).partition(": ")
    elements: list[doc.Element] = [
        doc.Heading(doc.Span(f"Best options of {case.name}")),
        doc.Callout(
            doc.Span(word, "good" if words.is_decided(case, goal) else "unsure"), doc.Span(rest)
        ),
    ]
    if found is not None:
        elements += _advice(found)
    warnings = [f"! {remark}" for remark in case.remarks]
    left = [f"not chosen from: {each.name}: {each.reason}" for each in case.left_out]
    if warnings or left:
        elements.append(doc.Items(tuple(map(doc.Span, (*warnings, *left)))))
    elements += [
        doc.Paragraph(doc.Span(f"{words.ranked_by(case.ranking)}.")),
        _ranking_table(case, case.ranking, _MOST_ROWS),
        *_folded("Effects of the options", _effects(case.effects, case if figures else None)),
        *_folded("Pareto front", _front(case, figure=figures)),
    ]
    for ranking in case.rankings[1:]:
        table = _ranking_table(case, ranking, _MOST_ROWS)
        title = words.ranked_by(ranking)
        elements += [
            doc.Only("html", (doc.Details(doc.Span(title), (table,)),)),
            doc.Only("markdown", (doc.Paragraph(doc.Span(f"{title}.")), table)),
        ]
    unknown = doc.Items(tuple(map(doc.Span, case.not_measured)))
    return [
        *elements,
        doc.Only("html", (doc.Details("What the run says nothing of", (unknown,)),)),
        doc.Only("markdown", (doc.Paragraph("The run says nothing of:"), unknown)),
    ]


def _advice(found: model.Recommendation) -> list[doc.Element]:
    """Returns the evidence for a recommendation, and how to follow it."""
    said = [*found.evidence, f"chosen by {found.chosen_by}"]
    elements: list[doc.Element] = [
        doc.Items(tuple(map(doc.Span, said))),
        *_folded("As an entry of a suite:", [doc.Code(found.suite)]),
    ]
    if found.code:
        elements += _folded("In Orbax's own terms:", [doc.Code(found.code)], opened=True)
    if found.other_code:
        others: list[doc.Element] = [doc.Code(code) for code in found.other_code]
        elements += _folded("For other interfaces of Orbax:", others)
    if found.why_no_code:
        elements.append(doc.Paragraph(doc.Span(f"No code of Orbax: {found.why_no_code}.")))
    differences = words.difference_lines(found)
    if differences:
        elements.append(doc.Paragraph(doc.Span(f"Unlike the defaults of {found.defaults_from}:")))
        elements.append(doc.Items(tuple(map(doc.Span, differences))))
    elif found.code:
        elements.append(
            doc.Paragraph(doc.Span(f"These are the defaults of {found.defaults_from}."))
        )
    return elements


def _folded(title: str, elements: list[doc.Element], *, opened: bool = False) -> list[doc.Element]:
    """Returns elements that HTML folds under a line, and Markdown has below it."""
    if not elements:
        return []
    return [
        doc.Only("html", (doc.Details(title, tuple(elements), open=opened),)),
        doc.Only(
            "markdown", ((doc.Paragraph(title),) if title.endswith(":") else ()) + tuple(elements)
        ),
    ]


def _ranking_table(case: model.Case, ranking: model.Ranking, most: int) -> doc.Table:
    points = {point.point_id: point for point in case.points}
    places = list(enumerate(ranking.places, start=1))
    # What is recommended stands first: the table must not name another than the answer does.
    places.sort(key=lambda place: _standing(case, ranking, place[1]) != _CHOSEN)
    rows = [
        doc.Row(
            (
                str(number),
                doc.Span(words.options(points[place.point_id])),
                doc.Span(place.point_id, "dim"),
                str(place.rounds),
                words.value(ranking.goal, place.median),
                "–" if place.ratio is None else words.interval(place.ratio, place.low, place.high),
                _standing(case, ranking, place),
            ),
            dim=place.tied is False,
        )
        for number, place in places[:most]
    ]
    return doc.Table(
        (
            doc.Column("rank", "number"),
            doc.Column("options", apart=True),
            doc.Column("point"),
            doc.Column("rounds", "number"),
            doc.Column("median", "number"),
            doc.Column("of rank 1", "number"),
            doc.Column("tie", "fixed"),
        ),
        tuple(rows),
        sorts=True,
    )


def _standing(case: model.Case, ranking: model.Ranking, place: model.Ranked) -> str:
    """Returns whether a point is the best, tied or behind, or which of the tied is recommended."""
    if ranking.ties == (place.point_id,):
        return "best"
    found = case.recommendation
    chosen = ranking is case.ranking and found is not None and found.point_id == place.point_id
    return _CHOSEN if chosen else words.tie(place)


def _effects(effects: model.Effects, figure: model.Case | None) -> list[doc.Element]:
    elements: list[doc.Element] = []
    if effects.main:
        rows = tuple(
            doc.Row(
                (
                    doc.Span(" and ".join(each.options), code=True),
                    doc.Span(
                        words.effect(each) if len(each.options) == 1 else words.interaction(each)
                    ),
                    words.interval(each.ratio, each.low, each.high),
                    "matters" if each.matters else "–",
                ),
                dim=not each.matters,
            )
            for each in (*effects.main, *(pair for pair in effects.interactions if pair.matters))
        )
        elements.append(
            doc.Paragraph(
                doc.Span(f"Effects on {effects.goal.text}, from {effects.rounds} rounds:")
            )
        )
        if figure is not None:
            elements.append(
                doc.Figure("Effects of the options", functools.partial(effects_figure, figure))
            )
        columns = (
            doc.Column("option"),
            doc.Column("effect", "prose"),
            doc.Column("factor", "number"),
            doc.Column("all in mind", "fixed"),
        )
        elements.append(doc.Table(columns, rows))
    said = [*effects.unknown]
    if others := words.other_pairs(effects):
        said.append(others)
    said.append(
        "the fit of main effects and pairs is used"
        if effects.used
        else f"the fit of main effects and pairs is not used: {effects.why}"
    )
    elements.append(doc.Items(tuple(map(doc.Span, said))))
    return elements


def _front(case: model.Case, *, figure: bool) -> list[doc.Element]:
    if len(case.front_of) < 2:
        return []
    points = [point for point in case.points if point.point_id in case.front]
    measures = case.front_of
    rows = tuple(
        doc.Row(
            (
                doc.Span(words.options(point)),
                *(
                    words.value(model.Goal.of(measure), point.medians[measure])
                    for measure in measures
                ),
            )
        )
        for point in points
    )
    columns = (doc.Column("point"), *(doc.Column(measure, "number") for measure in measures))
    drawn = doc.Figure("Points by save and load", functools.partial(front_figure, case))
    return [
        doc.Paragraph(doc.Span(f"Pareto front of {', '.join(measures)}, by medians:")),
        *([drawn] if figure else []),
        doc.Table(columns, rows, sorts=True),
    ]


def _largest(case: model.Case) -> list[model.OptionContrast]:
    return sorted(case.effects.main, key=lambda each: -max(each.ratio, 1 / each.ratio))


_WIDTH: Final = 9.6
_HEIGHT: Final = 3.6
_ROW: Final = 0.3
MOST_EFFECTS: Final = 20
_MOST_NAMES: Final = 8


def front_figure(case: model.Case) -> Drawing:
    """Returns the points by time of save and load; those on the front are filled and named."""
    figure = figures.new_figure(_WIDTH, _HEIGHT)
    axes = figure.subplots()
    chosen = None if case.recommendation is None else case.recommendation.point_id
    first, second = case.front_of[:2]
    shown = [point for point in case.points if first in point.medians and second in point.medians]
    apart = {chosen, *case.front}
    behind = [point for point in shown if point.point_id not in apart]
    axes.plot(  # thousands of points are one drawing, and not one each
        [point.medians[first] for point in behind],
        [point.medians[second] for point in behind],
        "o",
        color=figures.BAR,
        markerfacecolor=figures.PAGE,
    )
    for point in shown:
        if point.point_id not in apart:
            continue
        on_front = point.point_id in case.front
        axes.plot(
            [point.medians[first]],
            [point.medians[second]],
            "D" if point.point_id == chosen else "o",
            color=figures.PASS if point.point_id == chosen else figures.BAR,
            markerfacecolor=None if on_front else figures.PAGE,
        )
    for axis, goal in ((axes.xaxis, first), (axes.yaxis, second)):
        write = functools.partial(words.value, model.Goal.of(goal))
        figures.log_axis(axis, [point.medians[goal] for point in shown], write)
        axis.set_label_text(f"{goal}, median")
    named = [point for point in shown if point.point_id in case.front]
    if len(named) <= _MOST_NAMES:
        figures.name_marks(
            axes,
            {
                (point.medians[first], point.medians[second]): figures.label(
                    words.options(point), 60
                )
                for point in named
            },
            [(point.medians[first], point.medians[second]) for point in shown],
        )
    return figure


def effects_figure(case: model.Case) -> Drawing:
    """Returns main effects as ratios with their intervals, on a log scale; 1 is no effect."""
    shown = case.effects.main[:MOST_EFFECTS]
    figure = figures.new_figure(_WIDTH, 1.0 + _ROW * len(shown))
    axes = figure.subplots()
    for row, contrast in enumerate(reversed(shown)):
        colour = figures.DIM
        if contrast.matters:
            colour = figures.PASS if contrast.ratio < 1 else figures.REGRESSION
        axes.plot([contrast.low, contrast.high], [row, row], color=colour, linewidth=1.6)
        axes.plot([contrast.ratio], [row], "o", color=colour)
    axes.axvline(1, color=figures.DIM, linewidth=1)
    ends = [value for contrast in shown for value in (contrast.low, contrast.high)]
    figures.log_axis(axes.xaxis, [1.0, *ends], lambda ratio: f"{ratio:g}x")
    axes.set_yticks(
        range(len(shown)),
        [
            figures.label(
                f"{words.option(c.options[0], c.values[0])} / {words.setting(c.against[0])}", 60
            )
            for c in reversed(shown)
        ],
    )
    axes.set_xlabel(f"factor on {case.effects.goal.text}")
    return figure
