"""Drawings of verdicts: intervals of several operations, blocks and times of one."""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.verdicts.headlines import change, is_real
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict
from orbax_bench_core.config import ARMS, Arm, GateConfig, GateRule
from orbax_bench_core.exit_codes import WORDS

_WIDEST: Final = 20.0
"""Ratio at which an axis ends, whatever would lie beyond."""
_FAR: Final = 2.0
"""Ratio of the largest time to the usual ones from which on an axis ends before it."""
_TONES: Final[dict[Arm, pages.Tone]] = {"baseline": "c1", "candidate": "c2"}

Named = tuple[str, OperationVerdict]
"""A row of a drawing: its name, and what it shows."""


def draw_intervals(rows: Sequence[Named], gate: GateConfig) -> pages.Chart:
    """Returns the intervals of operations on one axis, the first on top."""
    margins = [_bounds(each, gate.rule(each.operation))[1] for _, each in rows]
    x = _ratio_axis(
        "change: best guess and 95 % interval",
        (end for _, each in rows for end in _ends(each)),
        max(margins),
    )
    marks: list[pages.Mark] = []
    beyond: list[tuple[float, float]] = []
    for place, ((_, each), margin) in enumerate(zip(rows[::-1], margins[::-1], strict=True)):
        beyond += [(min(1 + margin, x.scale.high), place - 0.5), (x.scale.high, place + 0.5)]
        if not is_real(each.verdict.ratio):
            continue
        role = WORDS[each.verdict.time_word or each.verdict.word].role
        low, high = _interval(each, x)
        marks.append(pages.Mark("whisker", ((low, place), (high, place)), role))
        marks.append(
            pages.Mark("dots", ((each.verdict.ratio, place),), role, hollow=not each.primary)
        )
    same = pages.Mark("line", ((1, -0.5), (1, len(rows) - 0.5)), "dim")
    forbidden = pages.Mark("band", tuple(beyond), "bad", "slower by the margin or more")
    said = "; ".join(f"{name} {change(each.verdict)}" for name, each in rows)
    names = pages.named_axis([name for name, _ in rows][::-1])
    return pages.Chart("", said, x, names, (forbidden, same, *marks), 14 + 34 * len(rows))


def draw_operation(
    point: PointVerdict, operation: OperationVerdict, gate: GateConfig
) -> Iterator[pages.Chart]:
    """Yields the times of both arms in the order measured, and the ratio of each block."""
    if any(is_real(value) for times in operation.times.values() for value in times):
        yield _series(point, operation)
    ratios = [_ratio(value) for value in operation.block_log_ratios]
    if any(map(is_real, ratios)):
        yield _blocks(operation, ratios, gate.rule(operation.operation))


def _series(point: PointVerdict, operation: OperationVerdict) -> pages.Chart:
    rows = [[each for each in times if is_real(each)] for times in operation.times.values()]
    values = [value for row in rows for value in row]
    usual = max(pages.Scale.of([row]).high for row in rows if row)
    top = 1.08 * (max(values) if max(values) < _FAR * usual else usual)
    longest = max(
        len(times) + len(point.failed_at.get(arm, ())) for arm, times in operation.times.items()
    )
    y = pages.axis("", 0, top, pages.seconds)
    x = pages.axis("operation of each side, in the order measured", 0, longest + 1, pages.digits)
    marks, said = [], []
    stalls = operation.verdict.stalls
    if stalls is not None:
        above = stalls.threshold * statistics.median(values)
        ends = ((0.0, above), (longest + 1.0, above))
        marks += [pages.Mark("line", ends, "dim", "a stall is above", dashed=True)] * (above < top)
    for arm in ARMS:
        times, failed = operation.times.get(arm, ()), point.failed_at.get(arm, ())
        places = [at + 1 for at in range(len(times) + len(failed)) if at not in {*failed}]
        found = [pair for pair in zip(places, times, strict=False) if is_real(pair[1])]
        tone = _TONES[arm]
        if found:
            marks.append(pages.Mark("dots", tuple(found), tone, arm))
            said.append(f"{arm} {pages.seconds(statistics.median(t for _, t in found))}")
        health = operation.health.get(arm)
        if health is not None and health.drifts and health.drift is not None and found:
            middle, half = statistics.median(times), health.drift / 2
            line = ((1.0, middle * (1 - half)), (float(longest), middle * (1 + half)))
            drift = f"{arm} drifts by {100 * health.drift:+.0f} %"
            marks.append(pages.Mark("line", line, tone, drift, dashed=True))
        if failed:
            at = tuple((place + 1.0, 0.0) for place in failed)
            marks.append(pages.Mark("tick", at, tone, f"{arm} failed"))
    title = f"{pages.code(operation.operation)}: time of each operation"
    return pages.Chart(title, f"medians {', '.join(said)}", x, y, tuple(marks), 180)


def _blocks(operation: OperationVerdict, ratios: Sequence[float], rule: GateRule) -> pages.Chart:
    tolerance, margin = _bounds(operation, rule)
    y = _ratio_axis("", [*ratios, *_ends(operation)], margin)
    right = len(ratios) + 1.0
    x = pages.axis("block, in the order measured", 0, right, pages.digits)
    role = WORDS[operation.verdict.time_word or operation.verdict.word].role
    low, high = _interval(operation, y)
    marks = [
        pages.Mark("band", ((0, low), (right, high)), role, "95 % interval"),
        pages.Mark("line", ((0, 1), (right, 1)), "dim"),
        pages.Mark(
            "line", ((0, 1 + tolerance), (right, 1 + tolerance)), "dim", "tolerance", dashed=True
        ),
        pages.Mark("line", ((0, 1 + margin), (right, 1 + margin)), "bad", "margin", dashed=True),
    ]
    if is_real(ratio := operation.verdict.ratio):
        marks.append(pages.Mark("line", ((0, ratio), (right, ratio)), role, "best guess"))
    shown = [(float(at), each) for at, each in enumerate(ratios, 1) if is_real(each)]
    marks.append(pages.Mark("dots", tuple(shown), "plain", "block"))
    title = f"{pages.code(operation.operation)}: change in each block"
    said = f"{len(shown)} blocks, margin {pages.share(margin)}"
    return pages.Chart(title, said, x, y, tuple(marks), 180)


def _bounds(operation: OperationVerdict, rule: GateRule) -> tuple[float, float]:
    """Returns tolerance and margin as shares of the baseline's median, floors of seconds in it."""
    times = [value for value in operation.times.get("baseline", ()) if is_real(value)]
    least = rule.min_effect_s / statistics.median(times) if times else 0.0
    return max(rule.tolerance, least), max(rule.margin, least)


def _ends(operation: OperationVerdict) -> list[float]:
    verdict = operation.verdict
    return [end for end in (verdict.ratio, verdict.low, verdict.high) if end is not None]


def _interval(operation: OperationVerdict, axis: pages.Axis) -> tuple[float, float]:
    """Returns the interval of an operation; an open end is that of the axis."""
    low, high, ratio = operation.verdict.low, operation.verdict.high, operation.verdict.ratio
    if low is None and high is None:  # there is none
        low = high = ratio
    return (low if is_real(low) else axis.scale.low, high if is_real(high) else axis.scale.high)


def _ratio(log_ratio: float) -> float:
    try:
        return math.exp(log_ratio)
    except OverflowError:
        return math.inf


def _ratio_axis(label: str, ratios: Iterable[float], margin: float) -> pages.Axis:
    """Returns an axis that shows all ratios, no change, and more than the margin."""
    shown = [value for value in ratios if is_real(value)]
    low, high = min([*shown, 1 / (1 + margin)]), max([*shown, 1 + 1.5 * margin])
    room = (high / low) ** 0.06
    ends = max(low / room, 1 / _WIDEST), min(high * room, _WIDEST)
    return pages.axis(label, *ends, _change_tick, log=True)


def _change_tick(ratio: float) -> str:
    return "same" if abs(ratio - 1) < 1e-9 else pages.change(ratio)
