"""Rankings, effects, front and recommendation of a run, from what was observed of its points."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.analysis.best.advice import Choice, recommend
from orbax_bench_core.analysis.best.factorial import Contrast, Factorial, Layout, analyse
from orbax_bench_core.analysis.best.goals import (
    FRONT,
    MEASURES,
    RECOVERY,
    SAVE,
    STEP_P99,
    goal_value,
    known_goal,
    parse_goal,
)
from orbax_bench_core.analysis.best.model import (
    Best,
    Case,
    Effects,
    FittedPlace,
    Goal,
    LeftOut,
    OptionContrast,
    Place,
    PointInfo,
    Ranking,
    Search,
)
from orbax_bench_core.analysis.best.observations import Observed, Observer, choices
from orbax_bench_core.analysis.best.orbax_code import ATTRIBUTES
from orbax_bench_core.analysis.best.ranking import LEVEL, complete_rounds, rank
from orbax_bench_core.analysis.best.remarks import not_measured, remarks
from orbax_bench_core.analysis.best.staging import staging_lines
from orbax_bench_core.document import count, num_bytes
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import Run, RunDirectory, RunFile, RunInfo

Values = dict[str, dict[int, float]]
"""Values of a goal by point, then by round."""

_MOST_POINTS: Final = 5000
"""A case with more points than these is not fitted: nobody reads it, and it would take minutes."""


def best(run: Run | str, *, goal: str | None = None, peak_memory: int | None = None) -> Best:
    """Returns which options to take, from the records of a sweep.

        found = orbax_bench_core.best("out", goal="blocking=3,load=1")
        found.ranking(), found.effects(), found.front()  # pandas frames
        print(found.cases[0].recommendation.code)

    Args:
        run: A run, or its directory, local or gs://.
        goal: `save`, `load`, `blocking`, `bytes`, `memory`, the name of an operation, or several
            with weights: `blocking=3,load=1`. None takes `save`, or the first that was measured.
        peak_memory: Most bytes of host memory that a point may take; None sets no bound.

    Raises:
        UserError: There is no run, no sweep in it, or the goal was not measured.
    """
    read = Run(RunDirectory(run)) if isinstance(run, str) else run
    observer = Observer(read.info.expansion.plain)
    for repeat in read.repeats():
        observer.add(repeat)
    found = best_of(
        read.info,
        observer,
        goal=goal,
        peak_memory=peak_memory,
        search=read_search(read.directory, read.info),
    )
    if not found.cases:
        raise UserError(
            f"{read.directory.root}: there is nothing to choose from: no two points of the run do "
            "the same work and have a repeat that passed. Give options a list of values, such as "
            "use_ocdbt: [true, false]"
        )
    return found


def best_of(
    info: RunInfo,
    observer: Observer,
    *,
    goal: str | None = None,
    peak_memory: int | None = None,
    search: Search | None = None,
) -> Best:
    """Returns the same of repeats that were observed while they were read for something else.

    Raises:
        UserError: The goal was not measured.
    """
    grouped = {
        name: points
        for name, points in observer.cases().items()
        if sum(bool(point.values) for point in points) > 1
    }
    measured = frozenset(
        measure for points in grouped.values() for point in points for measure in point.values
    )
    chosen = parse_goal(goal or (search.goal.text if search else default_goal(measured)))
    if grouped:
        known_goal(chosen, measured)
    elif goal is not None and search is None:
        known_goal(chosen, frozenset(MEASURES))
    asked = _Asked(info=info, goal=chosen, peak_memory=peak_memory, search=search)
    return Best(
        run_id=info.run_id,
        suite=info.suite_name,
        goal=chosen,
        level=LEVEL,
        peak_memory_bytes=peak_memory,
        cases=tuple(
            case for name, points in grouped.items() if (case := _case(name, points, asked))
        ),
    )


def default_goal(measured: frozenset[str]) -> str:
    """Returns the goal where none is given: `recovery` of drills, `save`, the slowest steps, ..."""
    order = (RECOVERY, SAVE, STEP_P99, *MEASURES, *sorted(measured))
    return next((name for name in order if name in measured), SAVE)


def read_search(directory: RunDirectory, info: RunInfo) -> Search | None:
    """Returns the search of a run; None where it was none, or its file is of another run."""
    found = directory.read_result(RunFile.SEARCH, Search)
    return found if found is not None and found.run_id == info.run_id else None


def read_best(directory: RunDirectory) -> Best | None:
    """Returns what the report of a run found; None where there is no such file."""
    return directory.read_result(RunFile.BEST, Best)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Asked:
    info: RunInfo
    goal: Goal
    peak_memory: int | None
    search: Search | None

    @property
    def dropped(self) -> Mapping[str, int]:
        return {} if self.search is None else self.search.dropped


def values_for(points: Sequence[Observed], goal: Goal) -> Values:
    """Returns the values of a goal by point and round."""
    found: Values = {}
    for observed in points:
        measured = {name: observed.values.get(name, {}) for name in goal.weights}
        with_all = set.intersection(*map(set, measured.values()))
        by_round = {
            at: goal_value(goal, {name: of[at] for name, of in measured.items()})
            for at in sorted(with_all)
        }
        found[observed.point.id] = {at: v for at, v in by_round.items() if v is not None}
    return found


def _case(name: str, points: list[Observed], asked: _Asked) -> Case | None:
    values = values_for(points, asked.goal)
    if sum(map(bool, values.values())) < 2:
        return None
    varied = _varied(points)
    left_out = _left_out(points, values, asked)
    choosable = {id_: of for id_, of in values.items() if id_ not in left_out and of}
    interleaved = asked.info.execution.order == "interleaved"
    ranking = _ranking(asked.goal, choosable, asked.dropped, paired=interleaved)
    measured = [point for point in points if values[point.point.id]]
    factorial, rounds = _factorial(measured, values, varied)
    whole = len(measured) == len(points) and not asked.dropped
    effects = _effects(asked.goal, factorial, rounds, measured, whole=whole and interleaved)
    others = [parse_goal(measure) for measure in MEASURES if asked.goal.text != measure]
    rankings = [ranking]
    for goal in others:
        found = {id_: of for id_, of in values_for(points, goal).items() if of}
        if found:
            rankings.append(_ranking(goal, found, asked.dropped, paired=interleaved))
    infos = tuple(_info(point, varied) for point in points)
    front_of = tuple(m for m in FRONT if sum(m in info.medians for info in infos) > 1)
    choice = Choice(
        goal=asked.goal,
        points={point.point.id: point for point in points},
        values=choosable,
        ranking=ranking,
        factorial=factorial if effects.used else None,
        places=tuple(point.point.id for point in measured),
        varied=tuple(varied),
        paired=interleaved,
    )
    recommendation = recommend(choice) if choosable else None
    chosen = None if recommendation is None else recommendation.point_id
    memory = asked.peak_memory is not None or "memory" in asked.goal.weights
    return Case(
        name=name,
        rounds=max(len(of) for of in values.values()),
        options=varied,
        points=infos,
        rankings=tuple(rankings),
        effects=effects,
        front=pareto({info.point_id: info.medians for info in infos}, front_of),
        front_of=front_of,
        recommendation=recommendation,
        left_out=tuple(
            LeftOut(point_id=point.point.id, name=point.point.name, reason=left_out[point.point.id])
            for point in points
            if point.point.id in left_out
        ),
        staging=staging_lines(measured, varied),
        remarks=(
            *_searched(asked.search, points),
            *remarks(points, choice, chosen, memory=memory),
        ),
        not_measured=not_measured(points, varied, asked.info),
    )


def _varied(points: Sequence[Observed]) -> dict[str, tuple[Any, ...]]:
    """Returns what varies between points, with its values: that of Orbax first, if it is there."""
    found: dict[str, dict[str, Any]] = {}
    for observed in points:
        for name, value in choices(observed.point).items():
            found.setdefault(name, {})[repr(value)] = value
    varied = {name: list(values.values()) for name, values in found.items() if len(values) > 1}
    for name, values in varied.items():
        attribute = ATTRIBUTES.get(name)
        if attribute is not None and attribute.default in values:
            values.sort(key=lambda value: value != attribute.default)
    return {name: tuple(values) for name, values in varied.items()}


def _searched(search: Search | None, points: Sequence[Observed]) -> tuple[str, ...]:
    """Returns what a search left unmeasured."""
    if search is None:
        return ()
    behind = sum(len(stage.dropped) for stage in search.stages)
    said = (
        f"a search for {search.goal.text} dropped {behind} of {len(points)} points that were "
        f"clearly behind, and measured {search.measured} repeats; after round {search.rounds}: "
        f"{search.ended or 'it has not come to its end'}"
    )
    return (said,)


def _left_out(points: Sequence[Observed], values: Values, asked: _Asked) -> dict[str, str]:
    """Returns why points cannot be recommended, by id."""
    found: dict[str, str] = {}
    most = max(map(len, values.values()))
    for observed in points:
        id_, failed = observed.point.id, observed.failed
        total = len(failed) + len(observed.rounds)
        if failed:
            why = next(iter(failed.values()))
            found[id_] = f"{len(failed)} of {count(total, 'repeat')} did not pass: {why}"
        elif not observed.rounds:
            found[id_] = "it has no repeat yet"
        elif not values[id_]:
            found[id_] = f"no repeat of it has measured {asked.goal.text}"
        elif 2 * len(values[id_]) < most and id_ not in asked.dropped:
            found[id_] = f"it has {len(values[id_])} of {most} rounds only"
        elif asked.peak_memory is not None:
            peak = max(observed.values.get("memory", {}).values(), default=None)
            if peak is None:
                found[id_] = "its peak memory is unknown"
            elif peak > asked.peak_memory:
                found[id_] = (
                    f"its peak memory of {num_bytes(peak)} is above the bound of "
                    f"{num_bytes(asked.peak_memory)}"
                )
    return found


def _ranking(goal: Goal, values: Values, dropped: Mapping[str, int], *, paired: bool) -> Ranking:
    places = []
    for ranked in rank(values):
        tied = ranked.tied if paired else None
        # What a search has dropped was clearly behind; few rounds of it are left to show that.
        tied = False if ranked.point in dropped else tied
        places.append(
            Place(
                point_id=ranked.point,
                rounds=ranked.rounds,
                median=ranked.median,
                ratio=ranked.ratio,
                low=ranked.low,
                high=ranked.high,
                tied=tied,
            )
        )
    return Ranking(goal=goal, level=LEVEL, places=tuple(places))


def _factorial(
    points: Sequence[Observed], values: Values, varied: Mapping[str, tuple[Any, ...]]
) -> tuple[Factorial, tuple[int, ...]]:
    logs, rounds = complete_rounds(values, [point.point.id for point in points])
    if len(points) > _MOST_POINTS:
        said = f"with more than {_MOST_POINTS} points effects are not computed"
        return Factorial(unknown=(said,), fit_unknown=said), rounds
    rows = tuple(
        tuple(levels.index(choices(point.point).get(name)) for name, levels in varied.items())
        for point in points
    )
    # Of options that failed everywhere with one value, only the values that are left count.
    layout = _present(Layout(levels=dict(varied), rows=rows))
    return analyse(layout, logs), rounds


def _present(layout: Layout) -> Layout:
    """Returns a layout without values that no point has, and without options that do not vary."""
    names = list(layout.levels)
    used = [sorted({row[place] for row in layout.rows}) for place in range(len(names))]
    kept = [place for place in range(len(names)) if len(used[place]) > 1]
    return Layout(
        levels={
            names[place]: tuple(layout.levels[names[place]][level] for level in used[place])
            for place in kept
        },
        rows=tuple(tuple(used[place].index(row[place]) for place in kept) for row in layout.rows),
    )


def _effects(
    goal: Goal,
    factorial: Factorial,
    rounds: Sequence[int],
    points: Sequence[Observed],
    *,
    whole: bool,
) -> Effects:
    fit = factorial.fit
    fitted: list[FittedPlace] = []
    why = factorial.fit_unknown
    if fit is not None:
        pairs = zip((point.point.id for point in points), fit.means, strict=True)
        fitted = [
            FittedPlace(point_id=id_, value=math.exp(mean))
            for id_, mean in sorted(pairs, key=lambda pair: float(pair[1]))
        ]
        if not fit.holds:
            why = (
                "more than main effects and pairs is at work (lack of fit, "
                f"p = {fit.lack_of_fit:.2g}): the means count"
            )
        elif not whole:
            why = "not every point was measured in every round: the means count"
    return Effects(
        goal=goal,
        rounds=len(rounds),
        main=tuple(map(_kept, factorial.effects)),
        interactions=tuple(map(_kept, factorial.interactions)),
        unknown=factorial.unknown,
        fitted=tuple(fitted),
        lack_of_fit=None if fit is None else fit.lack_of_fit,
        used=fit is not None and not why,
        why=why,
    )


def _kept(contrast: Contrast) -> OptionContrast:
    return OptionContrast(
        options=contrast.options,
        values=contrast.values,
        against=contrast.against,
        ratio=contrast.ratio,
        low=contrast.low,
        high=contrast.high,
        matters=contrast.matters,
    )


def _info(observed: Observed, varied: Mapping[str, tuple[Any, ...]]) -> PointInfo:
    chosen = choices(observed.point)
    return PointInfo(
        point_id=observed.point.id,
        name=observed.point.name,
        options={name: chosen.get(name) for name in varied},
        medians={
            measure: statistics.median(observed.values[measure].values())
            for measure in MEASURES
            if observed.values.get(measure)
        },
        files=observed.files,
    )


def pareto(medians: Mapping[str, Mapping[str, float]], measures: Sequence[str]) -> tuple[str, ...]:
    """Returns the points that no other beats: none is as small in all measures, smaller in one.

    Points that lack a measure are left out. Medians are compared as they are, without a test.
    """
    if not measures:
        return ()
    found = {
        point: tuple(of[measure] for measure in measures)
        for point, of in medians.items()
        if all(measure in of for measure in measures)
    }
    front: list[str] = []
    kept: list[tuple[float, ...]] = []
    # In this order nobody is beaten by who comes later.
    for point, own in sorted(found.items(), key=lambda item: item[1]):
        if not any(all(a <= b for a, b in zip(o, own, strict=True)) and o != own for o in kept):
            front.append(point)
            kept.append(own)
    return tuple(front)
