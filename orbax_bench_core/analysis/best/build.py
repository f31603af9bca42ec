"""Choice of a run: its cases, from what was observed of its points, and the file it is kept in."""

from __future__ import annotations

from orbax_bench_core.analysis.best.case import Asked, case_of
from orbax_bench_core.analysis.best.goals import (
    MEASURES,
    RECOVERY,
    SAVE,
    STEP_P99,
    known_goal,
    parse_goal,
)
from orbax_bench_core.analysis.best.model import Best
from orbax_bench_core.analysis.best.observations import Observer
from orbax_bench_core.analysis.best.ranking import LEVEL
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import Run, RunDirectory, RunFile, RunInfo


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
    info: RunInfo,
    observer: Observer,
    *,
    goal: str | None = None,
    peak_memory: int | None = None,
) -> Best:
    """Returns the same of repeats that were observed while they were read for something else."""
    grouped = {
        name: points
        for name, points in observer.cases().items()
        if sum(bool(point.values) for point in points) > 1
    }
    measured = frozenset(
        measure for points in grouped.values() for point in points for measure in point.values
    )
    chosen = parse_goal(goal or _default_goal(measured))
    if grouped:
        known_goal(chosen, measured)
    elif goal is not None:
        known_goal(chosen, frozenset(MEASURES))
    asked = Asked(
        info=info,
        goal=chosen,
        peak_memory=peak_memory,
        not_alone=observer.not_alone(),
    )
    return Best(
        run_id=info.run_id,
        suite=info.suite_name,
        goal=chosen,
        level=LEVEL,
        peak_memory_bytes=peak_memory,
        cases=tuple(
            case for name, points in grouped.items() if (case := case_of(name, points, asked))
        ),
    )


def _default_goal(measured: frozenset[str]) -> str:
    """Returns the goal where none is given: `recovery` of drills, `save`, the slowest steps, ..."""
    order = (RECOVERY, SAVE, STEP_P99, *MEASURES, *sorted(measured))
    return next((name for name in order if name in measured), SAVE)


def read_best(directory: RunDirectory) -> Best | None:
    """Returns what the report of a run found; None where there is no such file."""
    return directory.read_result(RunFile.BEST, Best)
