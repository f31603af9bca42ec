"""Experiments on the gate: many comparisons of one kind, made up or replayed, and counted."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from orbax_bench_core.config import GateConfig, GateRule
from orbax_bench_core.gate import detectable
from orbax_bench_core.gate.blocks import Blocks, Bools, Floats, random_labels
from orbax_bench_core.gate.failures import judge_failures
from orbax_bench_core.gate.interval import interval
from orbax_bench_core.gate.judge import Look, Point
from orbax_bench_core.gate.location import TimeTest, judge_times
from orbax_bench_core.gate.looks import Schedule, within
from orbax_bench_core.gate.operation import outline
from orbax_bench_core.gate.rank_test import p_values
from perf.gate.cells import Cell, Part, Tally
from perf.gate.noise import REGIMES, days
from perf.gate.replay import windows
from perf.gate.rivals import RIVALS

RIVAL_OPERATIONS: Final = 20
"""Operations per arm that a rival takes."""

BASELINE_S: Final = 0.010
"""Typical seconds where the smallest slow-down in seconds is tried."""

Ends = tuple[float | None, float | None]
"""Of an interval; one that is None is open."""

Seen = tuple[int, dict[str, bool]]
"""Of one comparison: the operations per arm that it took, and what was seen in it."""

LATE: Final = 10
"""Operations of the candidate before a slow-down that begins late."""

MOST_USES: Final = 3
"""Uses of `--more` in a row: there are no more looks."""

LEAVE_STALL: Final = 0.3
LIVES_THAT_STALL: Final = 3
"""Stalls that come together: each operation ends a run of them with that chance, and a third of the
operations stall in lives that do."""


def run(part: Part) -> Tally:
    """Tries out one part of a cell."""
    cell, seed = part
    rng = np.random.default_rng(seed)
    if cell.kind == "rivals":
        return _rivals(cell, rng)
    seen = _KINDS[cell.kind](cell, rng)
    return sum((Tally(1, counts, took, took**2) for took, counts in seen), start=Tally())


def _time(cell: Cell, rng: np.random.Generator) -> Iterator[Seen]:
    """What the typical time says, after how many operations, and whether it is called faster."""
    schedule = _schedule(cell)
    for used, outcome in _settled(cell, rng, schedule.looks[schedule.last]):
        faster = _faster(used, outcome, cell)
        yield schedule.looks[outcome.look], {**_words(outcome.word), "faster": faster}


def _alone(cell: Cell, rng: np.random.Generator) -> Iterator[Seen]:
    """The test at one look, with no tolerance: its level."""
    operations = cell.rule.looks_of(cell.design.per_life)[0]
    for blocks in _comparisons(cell, rng, operations):
        p_value = p_values(blocks, math.log1p(cell.rule.tolerance))[0]
        yield operations, {"regression": within(p_value, cell.rule.alpha)}


def _detectable(cell: Cell, rng: np.random.Generator) -> Iterator[Seen]:
    """Whether the slow-down that is said to be detectable by a look is found by it."""
    operations = _schedule(cell).looks[cell.look]
    for _, outcome in _settled(cell, rng, operations, 1 + claimed(cell)):
        yield operations, _words(outcome.word)


def claimed(cell: Cell) -> float:
    """Returns the slow-down that is said to be detectable by the look of a cell."""
    assert cell.sigma is not None
    return detectable(
        cell.sigma,
        _schedule(cell).looks[cell.look],
        cell.rule,
        power=cell.power,
        per_life=cell.design.per_life,
        tau=cell.design.tau,
    )


def _interval(cell: Cell, rng: np.random.Generator) -> Iterator[Seen]:
    """Whether the interval at the look that stopped holds the truth and agrees with the verdict."""
    schedule = _schedule(cell)
    for used, outcome in _settled(cell, rng, schedule.looks[schedule.last]):
        low, high = ends = interval(used, cell.rule, outcome)
        above = low is not None and low > 1 + cell.rule.tolerance
        below = high is not None and high < 1 + cell.rule.margin
        words = _words(outcome.word)
        covered = _covers(ends, cell.ratio)
        contrary = above != words["regression"] or below != words["passes"]
        yield used.operations, {"covered": covered, "contrary": contrary}


def _stalls(cell: Cell, rng: np.random.Generator) -> Iterator[Seen]:
    """What time and stalls say together, with the bound of a PASS."""
    schedule = _schedule(cell)
    for blocks in _comparisons(cell, rng, schedule.looks[schedule.one_more]):
        for look in range(len(schedule.looks)):
            used = blocks.first(schedule.blocks(look))
            outcome = _look(used, cell.rule, look)
            found = outline(used, cell.rule, outcome)
            if found.settled:
                break
        assert found.stalls is not None
        seen = _words(found.word, found.stalls.bound < cell.candidate)
        by_stalls = found.endpoint == "stalls"
        seen["by_stalls"] = seen["regression"] and by_stalls
        seen["suspected"] = seen["suspected"] and by_stalls
        yield found.operations, seen


def _failures(cell: Cell, rng: np.random.Generator) -> Iterator[Seen]:
    """What failures say of a comparison whose times pass at the first look."""
    schedule, per_life = _schedule(cell), cell.design.per_life
    for _ in range(cell.series):
        labels = random_labels(schedule.blocks(schedule.one_more), rng)
        failed = _shares(cell, labels[..., None]) > rng.random((*labels.shape, per_life))
        for look in range(schedule.one_more + 1):
            count = schedule.blocks(look)
            found = judge_failures(failed[:count], labels[:count], cell.rule, look)
            if found.word != "INCONCLUSIVE":
                break
        yield found.attempts, _words(found.word, found.bound < cell.candidate)


def _point(cell: Cell, rng: np.random.Generator) -> Iterator[Seen]:
    """What the door says of a point, look by look: times, stalls, failures and after-effects."""
    for blocks in _comparisons(cell, rng, _schedule(cell).looks[-1]):
        fails = _shares(cell, blocks.labels) > rng.random(blocks.logs.shape)
        fails &= cell.kind == "point"
        times = np.where(fails, np.inf, cell.seconds * np.exp(blocks.logs))
        point, found, at_once = _live(times, blocks, cell)
        seen = _words(found.decided.word, _overstates(found, cell))
        seen |= {"at_once": at_once, "lives": bool(found.doubts)}
        if cell.after != 1:
            ends = _ends(point, found, cell)
            seen["covered"] = all(_covers(each, cell.ratio * cell.after) for each in ends)
        yield found.failures.attempts, seen


def _more(cell: Cell, rng: np.random.Generator) -> Iterator[Seen]:
    """What the door says of a point by itself, and as `--more` is used again on what it leaves.

    Each use lets a comparison that ended INCONCLUSIVE go on to the next look that is left. One that
    needs workers for each slot goes on with these by itself, and is counted as open.
    """
    schedule = _schedule(cell)
    for blocks in _comparisons(cell, rng, schedule.looks[-1]):
        times, seen, until, uses = np.exp(blocks.logs), {}, 0, 0
        last = len(schedule.looks) - 1
        for look in range(last + 1):
            count = schedule.blocks(look)
            point = _read(times[:count], blocks.candidate[:count], blocks.lives, cell, until)
            found = point.at(look)
            decided = found.decided
            if not decided.settled:
                continue
            seen |= {f"{name} {uses}": said for name, said in _words(decided.word).items()}
            if decided.word != "INCONCLUSIVE" or found.doubts or look == last:
                break
            uses, until = uses + 1, schedule.looks[look + 1]
        for later in range(uses + 1, MOST_USES + 1):
            seen |= {f"{name} {later}": said for name, said in _words(decided.word).items()}
        yield schedule.looks[look], seen


def _overstates(found: Look, cell: Cell) -> bool:
    """Returns whether a PASS would exclude more stalls or failures than there are."""
    told = [each.stalls for each in found.verdicts.values() if each.stalls is not None]
    rare = told if cell.kind == "stalling point" else [found.failures]
    more = cell.candidate - cell.baseline
    return any(
        each.bound < cell.candidate or (each.limit is not None and each.limit < more)
        for each in rare
    )


def _live(times: Floats, blocks: Blocks, cell: Cell) -> tuple[Point, Look, bool]:
    """Judges as a live comparison does: its last look, and if its first one says REGRESSION."""
    schedule, at_once = _schedule(cell), False
    for look in range(len(schedule.looks)):
        count = schedule.blocks(look)
        point = _read(times[:count], blocks.candidate[:count], blocks.lives, cell)
        found = point.at(look)
        at_once |= not look and found.decided.word == "REGRESSION"
        if found.decided.settled:
            break
    return point, found, at_once


def _read(times: Floats, labels: Bools, lives: bool, cell: Cell, until: int = 0) -> Point:
    config = GateConfig(**dict(cell.rule))
    return Point.read(
        dict.fromkeys(config.primary[: cell.primaries], times if lives else times[:, :, 0]),
        labels,
        config,
        blocks_per_process=cell.design.per_process,
        # A repeat does each operation once; the primary ones of a point are given the same times.
        repeat_s=cell.seconds,
        until=until,
    )


def _ends(point: Point, found: Look, cell: Cell) -> list[Ends]:
    """Returns the intervals of the operations of a point, at its last look."""
    return [
        interval(point.series([name], found.look)[name], cell.rule, test)
        for name, test in found.times.items()
    ]


def _covers(ends: Ends, ratio: float) -> bool:
    low, high = ends
    return (low is None or low <= ratio) and (high is None or ratio <= high)


def _words(word: str, below_truth: bool = False) -> dict[str, bool]:
    """Returns which word it was, and whether it was a PASS with a bound below the truth."""
    return {
        "regression": word == "REGRESSION",
        "passes": word == "PASS",
        "suspected": word == "INCONCLUSIVE",
        "unbounded": word == "PASS" and below_truth,
    }


def _floor(cell: Cell, rng: np.random.Generator) -> Iterator[Seen]:
    """What is said of a candidate that takes g(t) exactly: `ratio` is that of the bound."""
    schedule = _schedule(cell)
    for blocks in _comparisons(cell, rng, schedule.looks[schedule.last], 1.0):
        times = BASELINE_S * np.exp(blocks.logs)
        slower = np.maximum(cell.ratio * times, times + cell.rule.min_effect_s)
        logs = np.log(np.where(blocks.labels, slower, times))
        _, outcome = _settle(dataclasses.replace(blocks, logs=logs), cell.rule)
        yield schedule.looks[outcome.look], _words(outcome.word)


def _rivals(cell: Cell, rng: np.random.Generator) -> Tally:
    """What the rules of other tools say of as many operations as the gate's second look has."""
    times = np.exp(_logs(cell, rng, 2 * RIVAL_OPERATIONS))
    baseline, candidate = times[:, :RIVAL_OPERATIONS], cell.ratio * times[:, RIVAL_OPERATIONS:]
    if cell.source == "session":
        baseline = baseline * days(rng, len(times))
        candidate = candidate * days(rng, len(times))
    found = {name: rule(baseline, candidate, rng) for name, rule in RIVALS.items()}
    return Tally(len(times), {name: int(said.sum()) for name, said in found.items()})


_KINDS: Final[Mapping[str, Callable[[Cell, np.random.Generator], Iterator[Seen]]]] = {
    "time": _time,
    "test alone": _alone,
    "detectable": _detectable,
    "interval": _interval,
    "stalls": _stalls,
    "failures": _failures,
    "point": _point,
    "stalling point": _point,
    "more": _more,
    "floor": _floor,
}


def _schedule(cell: Cell) -> Schedule:
    return Schedule.of(cell.rule, cell.design.per_life)


def _look(blocks: Blocks, rule: GateRule, look: int) -> TimeTest:
    return judge_times({"": blocks}, {"": rule}, look)[""]


def _settle(blocks: Blocks, rule: GateRule) -> tuple[Blocks, TimeTest]:
    """Returns the operations up to the look that ends a comparison of times, and what it says."""
    schedule = Schedule.of(rule, blocks.per_life)
    for look in range(min(schedule.reached(len(blocks)), schedule.last + 1)):
        used = blocks.first(schedule.blocks(look))
        outcome = _look(used, rule, look)
        if outcome.settled:
            break
    return used, outcome


def _settled(
    cell: Cell, rng: np.random.Generator, operations: int, ratio: float | None = None
) -> Iterator[tuple[Blocks, TimeTest]]:
    """Makes comparisons of so many operations per arm, each with what its times say."""
    for blocks in _comparisons(cell, rng, operations, ratio):
        yield _settle(blocks, cell.rule)


def _comparisons(
    cell: Cell, rng: np.random.Generator, operations: int, ratio: float | None = None
) -> Iterator[Blocks]:
    """Makes comparisons of so many operations per arm."""
    design = cell.design
    count = design.blocks(operations)
    labels = random_labels(cell.series * count, rng).reshape(cell.series, count, -1)
    logs = _logs(cell, rng, design.values(count))[:, design.places(count)]
    logs = logs + design.shift(rng, labels)[..., None]
    logs = logs + math.log(cell.ratio if ratio is None else ratio) * labels[..., None]
    if cell.after != 1:
        logs = logs + math.log(cell.after) * _after_candidate(labels, design.per_process)
    if cell.late != 1 or cell.growth:
        earlier = labels.reshape(len(labels), -1).cumsum(axis=1).reshape(labels.shape) - 1
        slower = math.log(cell.late) * (earlier >= LATE) + np.log1p(cell.growth * earlier)
        logs = logs + (slower * labels)[..., None]
    if cell.kind in ("stalls", "stalling point"):
        logs = logs + _stalled(cell, rng, labels)
    for row, candidate in zip(logs, labels, strict=True):
        failed = np.zeros(row.shape, dtype=bool)
        yield Blocks(
            logs=row,
            candidate=candidate,
            failed=failed,
            lives=design.per_life > 1,
            per_process=design.per_process,
        )


def _after_candidate(labels: Bools, per_process: int | None) -> Bools:
    """Returns which operations follow one of the candidate in their process, in blocks of one."""
    flat = labels.reshape(len(labels), -1)
    before = np.concatenate([np.zeros((len(labels), 1), dtype=bool), flat[:, :-1]], axis=1)
    before[:, :: labels.shape[2] * (per_process or labels.shape[1])] = False
    return before.reshape(labels.shape)[..., None]


def _stalled(cell: Cell, rng: np.random.Generator, labels: Bools) -> Floats:
    """Returns the logs of what stalls make of the times, shape (series, blocks, slots, m)."""
    shape = (*labels.shape, cell.design.per_life)
    shares = np.broadcast_to(_shares(cell, labels[..., None]), shape)
    if not cell.sticky:
        stalls = rng.random(shape) < shares
    elif cell.design.per_life > 1:
        lives = rng.random(labels.shape)[..., None] < LIVES_THAT_STALL * shares
        stalls = lives & (rng.random(shape) * LIVES_THAT_STALL < 1)
    else:
        stalls = _runs(rng, shares.reshape(len(labels), -1)).reshape(shape)
    return np.where(stalls, np.log(rng.uniform(*cell.factor, shape)), 0.0)


def _runs(rng: np.random.Generator, shares: Floats) -> Bools:
    """Returns runs of stalls: a Markov chain with these shares in the long run."""
    found, draws = np.empty(shares.shape, dtype=bool), rng.random(shares.shape)
    found[:, 0] = draws[:, 0] < shares[:, 0]
    for index in range(1, shares.shape[1]):
        share = shares[:, index]
        enters = draws[:, index] < LEAVE_STALL * share / (1 - share)
        found[:, index] = np.where(found[:, index - 1], draws[:, index] >= LEAVE_STALL, enters)
    return found


def _shares(cell: Cell, labels: Bools) -> Floats:
    return np.where(labels, cell.candidate, cell.baseline)


def _faster(blocks: Blocks, outcome: TimeTest, cell: Cell) -> bool:
    """Returns whether the ratio 1.00 is rejected downward, as for a single operation."""
    if outcome.word != "PASS":
        return False
    p_value = p_values(blocks, 0.0)[1]
    for test in filter(None, (outcome.processes, outcome.job)):
        p_value = max(p_value, test.tails(0.0)[1])
    return within(p_value, cell.rule.alpha * _schedule(cell).shares[outcome.look])


def _logs(cell: Cell, rng: np.random.Generator, length: int) -> Floats:
    if cell.sigma is not None:
        return np.asarray(cell.sigma * rng.standard_normal((cell.series, length)))
    if isinstance(cell.source, str):
        return np.log(REGIMES[cell.source](rng, cell.series, length))
    return np.log(windows(cell.source, rng, cell.series, length))
