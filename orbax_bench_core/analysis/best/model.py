"""Model of `best.json`: rankings, effects, front, advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.files import ResultModel

if TYPE_CHECKING:
    import pandas


class Goal(ResultModel):
    """A goal: the weighted geometric mean of measures, to be as small as possible."""

    text: str  # as it was given
    weights: dict[str, float]  # weight of each measure; they add up to 1

    @classmethod
    def of(cls, measure: str) -> Goal:
        """Returns the goal that is one measure."""
        return cls(text=measure, weights={measure: 1.0})

    @property
    def unit(self) -> str:
        """`s`, `B`, or nothing for a goal of several measures."""
        if len(self.weights) > 1:
            return ""
        return "B" if next(iter(self.weights)) in ("bytes", "memory") else "s"


class Ranked(ResultModel):
    """A point in a ranking."""

    point_id: str
    rounds: int  # rounds with a value
    median: float  # median of the goal: seconds, bytes, or without unit
    # its value over that of the best, geometric mean over rounds; None without a round that has
    # both
    ratio: float | None
    # lower end of the interval of the ratio, at the level of its test; None with fewer than three
    # worker processes
    low: float | None
    high: float | None  # upper end of it
    tied: bool | None  # whether it cannot be told from the best; None if that is unknown


class Ranking(ResultModel):
    """Points by one goal, the best first."""

    goal: Goal
    level: float  # level of its ties and intervals
    processes: int = 1  # worker processes that measured the rounds of the first point
    cache: str = ""  # state of the page cache that its loads met; empty for a goal without any
    places: tuple[Ranked, ...]  # the points

    @property
    def ties(self) -> tuple[str, ...]:
        """Ids of the points that cannot be told from the best, itself included; or may not be."""
        return tuple(place.point_id for place in self.places if place.tied is not False)


class OptionContrast(ResultModel):
    """Effect of a value of an option, or of a pair of options."""

    options: tuple[str, ...]  # the option, or both
    values: tuple[Any, ...]  # its value, or both
    against: tuple[Any, ...]  # what it is compared with
    # factor on the goal; of a pair the factor by which one effect changes with the other
    ratio: float
    low: float  # lower end of its 95 % interval
    high: float  # upper end of it
    matters: bool  # whether it is told from 1 with all others of its kind in mind (Holm)


class FittedPlace(ResultModel):
    """Fitted value of a point."""

    point_id: str
    value: float  # geometric mean over the rounds, by the fit, in the unit of the goal


class Effects(ResultModel):
    """Effects of the options on a goal."""

    goal: Goal
    rounds: int  # rounds that they were estimated from, in which every point has a value
    main: tuple[OptionContrast, ...]  # main effects
    interactions: tuple[OptionContrast, ...]  # all pairs of options
    unknown: tuple[str, ...] = ()  # what is not known, and why
    # the points by the fit of main effects and pairs, the best first; none without one
    fitted: tuple[FittedPlace, ...] = ()
    # p-value of what is left beside main effects and pairs; None without a fit
    lack_of_fit: float | None = None
    used: bool = False  # whether the recommendation goes by the fit
    why: str = ""  # why it does not; empty if it does


class Confidence(ResultModel):
    """Confidence that the recommended point is within 5 % of the best."""

    # chance that another is over 5 % better, an upper bound; None if it is unknown
    risk: float | None
    rounds: int  # rounds that it is computed from
    processes: int = 1  # worker processes that measured these
    missing: int | None  # further rounds after which the risk would be 5 %; None if nobody knows
    # standard deviation of a value from process to process, as a share; None if it is unknown
    noise: float | None


class OptionDifference(ResultModel):
    """An option that is not as Orbax has it."""

    option: str  # name of the option in the suite
    value: Any  # value that is recommended
    default: Any  # what Orbax does by default
    varied: bool  # whether the sweep compared the two
    given: bool = True  # whether the suite gives it; otherwise it is the benchmark's own default


class Recommendation(ResultModel):
    """Point that is recommended."""

    point_id: str
    name: str  # its name
    chosen_by: str  # what chose it among the ties
    # how to ask Orbax for it, by the interface that was measured; empty if that is not known
    code: str
    other_code: tuple[str, ...] = ()  # the same options for other interfaces of Orbax
    why_no_code: str = ""  # why there is no code; empty if there is
    suite: str  # the same as an entry of a suite's `benchmarks`
    differences: tuple[OptionDifference, ...]  # how it differs from what Orbax does by default
    defaults_from: str  # release whose defaults these are
    # ratio of the goal to that of the point with Orbax's defaults, and its interval; None if no
    # such point was measured
    against_defaults: tuple[float, float, float] | None
    confidence: Confidence  # how surely it is within 5 % of the best
    evidence: tuple[str, ...]  # what speaks for it, in sentences


class LeftOut(ResultModel):
    """A point that cannot be recommended."""

    point_id: str
    name: str  # its name
    reason: str  # why


class PointInfo(ResultModel):
    """A point of a case."""

    point_id: str
    name: str  # its name
    options: dict[str, Any]  # what varies within the case, and its value
    medians: dict[str, float]  # median of each measure, in seconds or bytes
    files: int | None = None  # files of the checkpoint; None if they were not counted


class Case(ResultModel):
    """Points that do the same work, so that one can be chosen."""

    name: str  # the benchmark, and what else its points share
    rounds: int  # repeats of the point that has most of them
    options: dict[str, tuple[Any, ...]]  # options that vary, with their values
    points: tuple[PointInfo, ...]  # its points, in the order of the suite
    rankings: tuple[Ranking, ...]  # A ranking for the goal, then one for each measure
    effects: Effects  # effects on the goal
    front: tuple[str, ...]  # ids of the points that no other beats in save, load and bytes together
    front_of: tuple[str, ...]  # the measures of the front
    recommendation: Recommendation | None  # what is recommended; None if nothing can be
    left_out: tuple[LeftOut, ...]  # points that cannot be recommended
    remarks: tuple[str, ...]  # what else a reader must know: flags of repeats, and the like
    not_measured: tuple[str, ...]  # what the run says nothing of
    not_alone: int = 0  # repeats that were measured while others were on the same machine

    @property
    def ranking(self) -> Ranking:
        """The ranking for the goal."""
        return self.rankings[0]


class Best(ResultModel):
    """Which options to take, for each case of a run.

    Attributes:
        schema_version: Version of this layout.
        run_id: The run.
        suite: Name of its suite.
        goal: The goal.
        level: Level of ties and intervals.
        peak_memory_bytes: Most memory that a point may take; None without a bound.
        cases: The cases with two points or more.
    """

    schema_version: Literal[1] = 1
    run_id: str
    suite: str
    goal: Goal
    level: float
    peak_memory_bytes: int | None = None
    cases: tuple[Case, ...]

    @property
    def outcome(self) -> Outcome:
        """What an exit code is made of: every case needs a recommendation."""
        return Outcome(incomplete=not all(case.recommendation for case in self.cases))

    def ranking(self) -> pandas.DataFrame:
        """Returns one row per case, goal or measure, and point, the best first.

        What varies between the points stands under `option.<name>`.
        """
        import pandas

        rows = []
        for case in self.cases:
            points = {point.point_id: point for point in case.points}
            for ranking in case.rankings:
                for number, place in enumerate(ranking.places, start=1):
                    point = points[place.point_id]
                    options = {f"option.{name}": value for name, value in point.options.items()}
                    common = {"case": case.name, "goal": ranking.goal.text, "rank": number}
                    rows.append({**common, **place.model_dump(), "point": point.name, **options})
        return pandas.DataFrame(rows)

    def effects(self) -> pandas.DataFrame:
        """Returns one row per case and contrast: main effects, then pairs of options."""
        import pandas

        return pandas.DataFrame(
            [
                {"case": case.name, "goal": case.effects.goal.text, **contrast.model_dump()}
                for case in self.cases
                for contrast in (*case.effects.main, *case.effects.interactions)
            ]
        )

    def front(self) -> pandas.DataFrame:
        """Returns one row per point of each Pareto front, with its medians."""
        import pandas

        return pandas.DataFrame(
            [
                {"case": case.name, "point_id": point.point_id, "point": point.name} | point.medians
                for case in self.cases
                for point in case.points
                if point.point_id in case.front
            ]
        )
