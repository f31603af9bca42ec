"""Choice of a run: its cases, from what was observed of its points, and the file it is kept in."""

import dataclasses
import functools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orbax_bench_core.analysis.best import model
from orbax_bench_core.analysis.best.advice import Choice, recommend, remarks, unmeasured
from orbax_bench_core.analysis.best.factorial import effects_of
from orbax_bench_core.analysis.best.observations import (
    FRONT,
    MEASURES,
    RECOVERY,
    SAVE,
    STEP_P99,
    Observed,
    Observer,
    Values,
    cache_of,
    check_goal,
    choices,
    parse_goal,
    processes_of,
    values_for,
)
from orbax_bench_core.analysis.best.orbax_code import attributes
from orbax_bench_core.analysis.best.ranking import LEVEL, rank
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import Run, RunDirectory, RunInfo


def best(run: Run | str, *, goal: str | None = None, peak_memory: int | None = None) -> model.Best:
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
    repeats = 0
    for repeat in read.repeats():
        observer.add(repeat)
        repeats += 1
    if not repeats:
        nothing = "has no repeat that was measured yet; run its suite into it first"
        raise UserError(f"{read.directory.root} {nothing}")
    found = best_of(read.info, observer, goal=goal, peak_memory=peak_memory)
    if not found.cases:
        raise UserError(
            f"{read.directory.root}: there is nothing to choose from: no two points of the run do "
            "the same work and have a repeat that passed. Give options a list of values, such as "
            "use_ocdbt: [true, false]"
        )
    return found


def best_of(
    info: RunInfo, observer: Observer, *, goal: str | None = None, peak_memory: int | None = None
) -> model.Best:
    """Returns the same of repeats that were observed while they were read for something else.

    Args:
        info: The run.
        observer: It has taken every repeat of the run.
        goal: What to be best at, as `parse_goal` reads it; None takes the first of `recovery`,
            `save` and other measures that a repeat has.
        peak_memory: Bytes of resident memory that a point may reach; None for any.

    Raises:
        UserError: The goal cannot be read, or no repeat has measured it.
    """
    grouped = {
        name: points
        for name, points in observer.cases().items()
        if sum(bool(point.values) for point in points) > 1
    }
    measured = frozenset(
        measure for points in grouped.values() for point in points for measure in point.values
    )
    # Without a goal: of drills `recovery`, then `save`, the slowest steps, and whatever else.
    order = (RECOVERY, SAVE, STEP_P99, *MEASURES, *sorted(measured))
    chosen = parse_goal(goal or next((name for name in order if name in measured), SAVE))
    if grouped:
        check_goal(chosen, measured)
    elif goal is not None:
        check_goal(chosen, frozenset(MEASURES))
    asked = Asked(info=info, goal=chosen, peak_memory=peak_memory, not_alone=observer.not_alone())
    return model.Best(
        run_id=info.run_id,
        suite=info.suite_name,
        suite_file=info.suite_file,
        flags=info.flags,
        interleaved=info.execution.order == "interleaved",
        goal=chosen,
        level=LEVEL,
        peak_memory_bytes=peak_memory,
        cases=tuple(
            case for name, points in grouped.items() if (case := case_of(name, points, asked))
        ),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked:
    """Request for a choice: its run, its goal, and the bounds on it."""

    info: RunInfo
    goal: model.Goal  # what is made small
    peak_memory: int | None  # most bytes of host memory that a point may take; None sets no bound
    # repeats of each point that were not alone on their machine, by id
    not_alone: Mapping[str, int]

    @property
    def interleaved(self) -> bool:
        """Whether each round measured every point, so that rounds are pairs."""
        return self.info.execution.order == "interleaved"


def case_of(name: str, points: list[Observed], asked: Asked) -> model.Case | None:
    """Returns the choice among points; None if fewer than two have measured the goal.

    Args:
        name: Name of the case, for people.
        points: Points that do the same work, those without a repeat too.
        asked: Goal and limits.
    """
    values = values_for(points, asked.goal)
    if sum(map(bool, values.values())) < 2:
        return None
    varied = _varied(points)
    left_out = _left_out(points, values, asked)
    processes = processes_of(points)
    choosable = {id_: of for id_, of in values.items() if id_ not in left_out and of}
    ranking = _ranking(
        asked.goal,
        choosable,
        processes,
        paired=asked.interleaved,
        cache=cache_of(points, asked.goal),
    )
    measured = [point for point in points if values[point.point.id]]
    infos = tuple(_info(point, varied) for point in points)
    front_of = tuple(m for m in FRONT if sum(m in info.medians for info in infos) > 1)
    choice = Choice(
        points={point.point.id: point for point in points},
        values=choosable,
        ranking=ranking,
        varied=tuple(varied),
        processes=processes,
        execution=asked.info.execution,
    )
    recommendation = recommend(choice) if choosable else None
    chosen = None if recommendation is None else recommendation.point_id
    memory = asked.peak_memory is not None or "memory" in asked.goal.weights
    return model.Case(
        name=name,
        rounds=max(len(of) for of in values.values()),
        options=varied,
        points=infos,
        rankings=(ranking, *_other_rankings(points, asked, processes)),
        effects=effects_of(asked.goal, measured, values, varied, processes),
        front=pareto({info.point_id: info.medians for info in infos}, front_of),
        front_of=front_of,
        recommendation=recommendation,
        left_out=tuple(left_out.values()),
        remarks=tuple(remarks(points, choice, chosen, memory=memory)),
        unmeasured=unmeasured(points, varied, asked.info),
        not_alone=sum(asked.not_alone.get(point.point.id, 0) for point in points),
    )


def _other_rankings(
    points: Sequence[Observed], asked: Asked, processes: Mapping[int, int]
) -> Iterator[model.Ranking]:
    """Yields the rankings by what was measured beside the goal."""
    for measure in MEASURES:
        if measure != asked.goal.text:
            goal = model.Goal.of(measure)
            found = {id_: of for id_, of in values_for(points, goal).items() if of}
            if found:
                yield _ranking(
                    goal, found, processes, paired=asked.interleaved, cache=cache_of(points, goal)
                )


def _varied(points: Sequence[Observed]) -> dict[str, tuple[Any, ...]]:
    """Returns the keys that vary between points, with their values; Orbax's come first."""
    chosen = [choices(observed.point) for observed in points]
    names = dict.fromkeys(name for each in chosen for name in each)
    # Told apart as text: to Python 1 and True are equal, and no list can be in a set.
    found = {
        name: {repr(value): value for each in chosen for value in (each.get(name),)}
        for name in names
    }
    varied = {name: list(values.values()) for name, values in found.items() if len(values) > 1}
    for name, values in varied.items():
        attribute = attributes(points[0].point).get(name)
        if attribute is not None and attribute.default in values:
            values.sort(key=lambda value: value != attribute.default)
    return {name: tuple(values) for name, values in varied.items()}


def _left_out(points: Sequence[Observed], values: Values, asked: Asked) -> dict[str, model.LeftOut]:
    """Returns the points that cannot be recommended, by id."""
    found: dict[str, model.LeftOut] = {}
    most = max(map(len, values.values()))
    for observed in points:
        failed, own = observed.failed, len(values[observed.point.id])
        peak = max(observed.values.get("memory", {}).values(), default=None)
        out = functools.partial(
            model.LeftOut, point_id=observed.point.id, name=observed.point.name, memory_bytes=peak
        )
        if failed:
            total, error = len(failed) + len(observed.rounds), next(iter(failed.values()))
            left = out(why="failed", count=len(failed), total=total, error=error)
        elif not observed.rounds:
            left = out(why="none yet")
        elif not own:
            left = out(why="not the goal")
        elif 2 * own < most:
            left = out(why="few rounds", count=own, total=most)
        elif asked.peak_memory is not None and peak is None:
            left = out(why="memory unknown")
        elif asked.peak_memory is not None and peak is not None and peak > asked.peak_memory:
            left = out(why="memory")
        else:
            continue
        found[observed.point.id] = left
    return found


def _ranking(
    goal: model.Goal, values: Values, processes: Mapping[int, int], *, paired: bool, cache: str
) -> model.Ranking:
    places = rank(values, processes)
    if not paired:
        places = tuple(place.model_copy(update={"tied": None}) for place in places)
    rounds = values[places[0].point_id] if places else ()
    return model.Ranking(
        goal=goal, processes=len({processes[at] for at in rounds}), cache=cache, places=places
    )


def _info(observed: Observed, varied: Mapping[str, tuple[Any, ...]]) -> model.PointInfo:
    chosen = choices(observed.point)
    return model.PointInfo(
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

    Args:
        medians: Median by point, then by measure; less is better.
        measures: The measures that count.
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
