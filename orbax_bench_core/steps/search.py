"""Search step: whole rounds of a large sweep, without the points that are clearly behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.best import (
    FIRST_ROUNDS,
    LEVEL,
    Goal,
    Observed,
    Observer,
    Search,
    Stage,
    complete_rounds,
    default_goal,
    look,
    parse_goal,
    read_search,
    values_for,
)
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Session, run_rounds
from orbax_bench_core.files import write_atomically
from orbax_bench_core.limits import ensure_limits
from orbax_bench_core.records import Run, RunFile
from orbax_bench_core.steps.measuring import measuring
from orbax_bench_core.sweep import SweepPoint

_LEAST: Final = FIRST_ROUNDS + 1


def search_points(
    session: Session, *, goal: str | None = None, limits: bool = True, lock: bool = True
) -> Search:
    """Measures whole rounds of all points that may still be the best, and keeps what it decides.

    After three rounds, and after each that follows, points of the slower half are dropped whose
    chance to be over 5 % better than the leader is below 2.5 % divided by the number of points. It
    ends when these chances of all that are left add up to less than 2.5 %, or when the suite's
    `num_repeats` rounds are used up. A point that has a failed repeat is dropped.

    What is decided depends on the records alone, so that a search that was stopped goes on where it
    was. `search.json` says what was dropped, and when.

    Args:
        session: What is measured, of a suite without arms, with points that do the same work.
        goal: What to make small; None takes `save`, or the first measure that there is.
        limits: Whether to measure what the machine and the storage can do, once per run.
        lock: Whether to wait until nothing else of ours measures on this machine.

    Raises:
        UserError: The points do different work, or the suite has too few rounds for a search.
        CannotRecord: A record could not be written.
    """
    _check(session)
    asked = None if goal is None else parse_goal(goal)
    searching = _Searching(session, asked)
    with measuring(session, lock=lock):
        run_rounds(session, searching.next_round)
        if limits:
            settings = session.settings
            ensure_limits(session.directory, session.say, settings.host, anew=settings.new_limits)
    return searching.found


def _check(session: Session) -> None:
    info, points = session.info, session.plain
    cases = Observer(points).cases()
    if len(cases) != 1 or len(points) < 2:
        names = ", ".join(cases)
        raise UserError(
            "--search looks for the best of two points or more that do the same work; this suite "
            f"has {len(points)} point(s) of {len(cases)}: {names}. Give it one benchmark, "
            "checkpoint and mesh"
        )
    if info.num_repeats < _LEAST:
        raise UserError(
            f"--search takes up to num_repeats rounds, and drops nothing before round "
            f"{FIRST_ROUNDS}; the suite has num_repeats: {info.num_repeats}. Give it {_LEAST} or "
            "more, such as --override num_repeats=30: rounds that nobody needs are not made"
        )
    if info.execution.order != "interleaved":
        raise UserError("--search needs order: interleaved, so that rounds can be compared")


class _Searching:
    """A search under way; its decisions follow from the records."""

    def __init__(self, session: Session, goal: Goal | None) -> None:
        self._session = session
        self._goal = goal
        self._names = {point.id: point.name for point in session.plain}
        self._left = list(session.plain)
        self._measured = 0
        self._stages: list[Stage] = []
        self._ended = ""
        self._rounds = 0
        earlier = read_search(session.directory, session.info)
        if earlier is not None and goal is not None and earlier.goal != goal:
            raise UserError(
                f"--goal {goal.text}: this run was searched for {earlier.goal.text}, and points "
                "were dropped by that; give the same goal, or another directory"
            )
        if earlier is not None:
            self._goal = earlier.goal

    @property
    def found(self) -> Search:
        """What was decided so far."""
        return Search(
            run_id=self._session.info.run_id,
            goal=self._goal or parse_goal(default_goal(frozenset())),
            level=LEVEL,
            stages=tuple(self._stages),
            measured=self._measured,
            ended=self._ended,
            rounds=self._rounds,
        )

    def next_round(self, number: int) -> Sequence[SweepPoint]:
        """Returns the points of a round, after a look at those before; none ends the search."""
        self._rounds = number
        if number >= FIRST_ROUNDS:
            self._look(number)
            self._keep()
        if self._ended or number >= self._session.info.num_repeats:
            self._ended = self._ended or f"all {number} rounds of the suite are used up"
            self._keep()
            return ()
        self._measured += len(self._left)
        return self._left

    def _look(self, number: int) -> None:
        observed = self._observe(number)
        goal = self._goal_of(observed)
        values = values_for(list(observed.values()), goal)
        whole = [point.id for point in self._left if len(values[point.id]) == number]
        failed = [point.id for point in self._left if point.id not in whole]
        if not whole:
            self._ended = f"no point has passed in all {number} rounds"
            return
        logs, _ = complete_rounds(values, whole)
        seen = look(logs, len(self._session.plain))
        kept = {whole[place] for place in seen.keep}
        if seen.ended:
            kept = set(whole)
            self._ended = (
                "the only point that is left"
                if len(whole) == 1
                else f"{self._names[whole[seen.leader]]} is within 5 % of the best"
            )
        dropped = tuple(id_ for id_ in whole if id_ not in kept)
        if dropped or failed:
            stage = Stage(after=number, dropped=dropped, failed=tuple(failed))
            self._stages.append(stage)
            said = f"round {number}: {len(kept)} of {len(self._session.plain)} points go on"
            self._session.say(f"{said}, {len(dropped)} are clearly behind, {len(failed)} failed")
        self._left = [point for point in self._left if point.id in kept]

    def _observe(self, rounds: int) -> dict[str, Observed]:
        """Returns what the first rounds say of the points that are left."""
        found: dict[str, Observed] = {}
        run = Run(self._session.directory)
        for series in run.series():
            point = series.point
            if any(left.id == point.id for left in self._left):
                found[point.id] = Observed(point=point)
                for repeat in run.repeats(series):
                    if repeat.index < rounds:
                        found[point.id].add(repeat)
        return found

    def _goal_of(self, observed: dict[str, Observed]) -> Goal:
        measured = frozenset(name for each in observed.values() for name in each.values)
        if self._goal is None:
            self._goal = parse_goal(default_goal(measured))
        for name in self._goal.weights:
            if measured and name not in measured:
                raise UserError(
                    f"--goal {self._goal.text}: no repeat has measured {name!r}; there are "
                    f"{', '.join(sorted(measured))}"
                )
        return self._goal

    def _keep(self) -> None:
        content = self.found.model_dump_json(indent=1).encode()
        write_atomically(self._session.directory.root / RunFile.SEARCH, content)
