"""Tables of a verdict: a row per operation of a few points, or one per point of several."""

import math
from collections.abc import Sequence
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.names import heading
from orbax_bench_core.analysis.verdicts.headlines import (
    change,
    from_to,
    is_real,
    medians,
    nearest_to_trouble,
    primary,
    short_names,
    stamped,
)
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict
from orbax_bench_core.exit_codes import WORDS

FEW: Final = 2
"""Points up to which a table has each primary operation; of more it has the worst of each."""
_LONGEST: Final = 28
"""Characters of a point's name among those of others; its details have all of it."""


def deciding(point: PointVerdict, points: Sequence[PointVerdict]) -> list[OperationVerdict]:
    """Returns the operations of a point that have rows among those of all points."""
    if len(points) <= FEW:
        return primary(point) or list(point.operations)
    nearest = nearest_to_trouble(point)
    return [] if nearest is None else [nearest]


def answers_table(points: Sequence[PointVerdict]) -> pages.Table:
    """Returns a row for each operation of a few points, or one for each of several."""
    if len(points) <= FEW:
        return operations_table(points, only_primary=True)
    names, rows = short_names(points), []
    for point in points:
        shown: tuple[str, ...] = ("–", "–", "–")
        if (nearest := nearest_to_trouble(point)) is not None:
            shown = (label(nearest), from_to(nearest), change(nearest.verdict))
        rows.append(pages.Row((_cut(names[point.point_id]), *shown, _point_says(point))))
    heads = pages.columns("point", "worst", "times#", "change#", "result")
    return pages.Table(heads, tuple(rows))


def operations_table(points: Sequence[PointVerdict], *, only_primary: bool = False) -> pages.Table:
    """Returns a row for each operation of each point, primary ones first."""
    rows = []
    for point in points:
        group = point_title(point) if len(points) > 1 else ""
        found = deciding(point, ()) if only_primary else primary_first(point)
        for each in found:
            times = medians(each)
            cells = (label(each), times[0], times[1], change(each.verdict), _says(each, point))
            rows.append(pages.Row(cells, group, dim=not each.primary))
        if not found:
            rows.append(pages.Row(("–", "–", "–", "–", _point_says(point)), group))
    heads = ("operation", "baseline#", "candidate#", "change#", "result")
    return pages.Table(pages.columns(*heads), tuple(rows))


def point_title(point: PointVerdict) -> str:
    """Returns the word of a point and its name."""
    return f"{stamped(point)} {pages.code(point.point)}"


def primary_first(point: PointVerdict) -> list[OperationVerdict]:
    """Returns the operations of a point, those that decide first."""
    return sorted(point.operations, key=lambda operation: not operation.primary)


def label(operation: OperationVerdict) -> str:
    """Returns an operation as the heading of a row, with the cache of its loads."""
    cache = "" if operation.cache in ("", "unknown") else f" ({operation.cache})"
    return f"{heading(operation.operation)}{cache}"


def _says(operation: OperationVerdict, point: PointVerdict) -> pages.Cell:
    verdict, word = operation.verdict, operation.verdict.word
    stalls = word != "PASS" and verdict.endpoint == "stalls"
    if point.is_study:
        faster, slower = (verdict.high or math.inf) < 1, (verdict.low or 0.0) > 1
        said = "faster" if faster else "slower" if slower else "not told apart"
        return pages.Cell(said)
    if word == "INCONCLUSIVE" and not (is_real(verdict.ratio) and verdict.p_regression is not None):
        said = "stalls" if stalls else "not judged" if verdict.reason else "cannot tell"
    elif stalls:
        said = "stalls"
    else:
        said = {"REGRESSION": "slower", "PASS": "not slower", "INCONCLUSIVE": "cannot tell"}[word]
    said = "faster" if word == "PASS" and verdict.faster else said
    if not operation.primary:
        return pages.Cell(f"({said})", "dim")
    return pages.Cell(f"{pages.SIGNS[WORDS[word].role]} {said}", WORDS[word].role)


def _point_says(point: PointVerdict) -> pages.Cell:
    role, nearest = WORDS[point.word].role, nearest_to_trouble(point)
    said = {"failures": "failures", "missing": "missing", "storage": "storage"}.get(point.endpoint)
    if point.failed:
        said = "failed"
    elif nearest is not None and nearest.verdict.word == point.word:
        return _says(nearest, point)
    return pages.Cell(f"{pages.SIGNS[role]} {said or 'not judged'}", role)


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
