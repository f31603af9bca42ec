"""Model of `best.json`: rankings, effects, front, advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from orbax_bench_core.files import ResultModel

if TYPE_CHECKING:
    import pandas


class Goal(ResultModel):
    """A goal: the weighted geometric mean of measures, to be as small as possible.

    Attributes:
        text: As it was given.
        weights: Weight of each measure; they add up to 1.
    """

    text: str
    weights: dict[str, float]

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
    """A point in a ranking.

    Attributes:
        point_id: The point.
        rounds: Rounds with a value.
        median: Median of the goal: seconds, bytes, or without unit.
        ratio: Its value over that of the best, geometric mean over rounds; None without a round
            that has both.
        low: Lower end of the 95 % interval of the ratio; None with fewer than two rounds.
        high: Upper end of it.
        tied: Whether it cannot be told from the best; None where that is unknown.
    """

    point_id: str
    rounds: int
    median: float
    ratio: float | None
    low: float | None
    high: float | None
    tied: bool | None


class Ranking(ResultModel):
    """Points by one goal, the best first.

    Attributes:
        goal: The goal.
        level: Level of its ties and intervals.
        places: The points.
    """

    goal: Goal
    level: float
    places: tuple[Ranked, ...]

    @property
    def ties(self) -> tuple[str, ...]:
        """Ids of the points that cannot be told from the best, itself included; or may not be."""
        return tuple(place.point_id for place in self.places if place.tied is not False)


class OptionContrast(ResultModel):
    """Effect of a value of an option, or of a pair of options.

    Attributes:
        options: The option, or both.
        values: Its value, or both.
        against: What it is compared with.
        ratio: Factor on the goal; of a pair the factor by which one effect changes with the other.
        low: Lower end of its 95 % interval.
        high: Upper end of it.
        matters: Whether it is told from 1 with all others of its kind in mind (Holm).
    """

    options: tuple[str, ...]
    values: tuple[Any, ...]
    against: tuple[Any, ...]
    ratio: float
    low: float
    high: float
    matters: bool


class FittedPlace(ResultModel):
    """Fitted value of a point.

    Attributes:
        point_id: The point.
        value: Geometric mean over the rounds, by the fit, in the unit of the goal.
    """

    point_id: str
    value: float


class Effects(ResultModel):
    """Effects of the options on a goal.

    Attributes:
        goal: The goal.
        rounds: Rounds that they were estimated from, in which every point has a value.
        main: Main effects.
        interactions: All pairs of options.
        unknown: What is not known, and why.
        fitted: The points by the fit of main effects and pairs, the best first; none without one.
        lack_of_fit: p-value of what is left beside main effects and pairs; None without a fit.
        used: Whether the recommendation goes by the fit.
        why: Why it does not; empty where it does.
    """

    goal: Goal
    rounds: int
    main: tuple[OptionContrast, ...]
    interactions: tuple[OptionContrast, ...]
    unknown: tuple[str, ...] = ()
    fitted: tuple[FittedPlace, ...] = ()
    lack_of_fit: float | None = None
    used: bool = False
    why: str = ""


class Confidence(ResultModel):
    """Confidence that the recommended point is within 5 % of the best.

    Attributes:
        risk: Chance that another is over 5 % better, an upper bound; None where it is unknown.
        rounds: Rounds that it is computed from.
        missing: Further rounds after which the risk would be 5 %; None where nobody knows.
        noise: Standard deviation of a value within a round, as a share; None where it is unknown.
    """

    risk: float | None
    rounds: int
    missing: int | None
    noise: float | None


class OptionDifference(ResultModel):
    """An option that is not as Orbax has it.

    Attributes:
        option: Name of the option in the suite.
        value: Value that is recommended.
        default: What Orbax does by default.
        varied: Whether the sweep compared the two.
        given: Whether the suite gives it; otherwise it is the benchmark's own default.
    """

    option: str
    value: Any
    default: Any
    varied: bool
    given: bool = True


class Recommendation(ResultModel):
    """Point that is recommended.

    Attributes:
        point_id: The point.
        name: Its name.
        chosen_by: What chose it among the ties.
        code: How to ask Orbax for it, by the interface that was measured; empty where that is not
            known.
        other_code: The same options for other interfaces of Orbax.
        why_no_code: Why there is no code; empty where there is.
        suite: The same as an entry of a suite's `benchmarks`.
        differences: How it differs from what Orbax does by default.
        defaults_from: Release whose defaults these are.
        against_defaults: Ratio of the goal to that of the point with Orbax's defaults, and its
            interval; None where no such point was measured.
        confidence: How surely it is within 5 % of the best.
        evidence: What speaks for it, in sentences.
    """

    point_id: str
    name: str
    chosen_by: str
    code: str
    other_code: tuple[str, ...] = ()
    why_no_code: str = ""
    suite: str
    differences: tuple[OptionDifference, ...]
    defaults_from: str
    against_defaults: tuple[float, float, float] | None
    confidence: Confidence
    evidence: tuple[str, ...]


class LeftOut(ResultModel):
    """A point that cannot be recommended.

    Attributes:
        point_id: The point.
        name: Its name.
        reason: Why.
    """

    point_id: str
    name: str
    reason: str


class PointInfo(ResultModel):
    """A point of a case.

    Attributes:
        point_id: The point.
        name: Its name.
        options: What varies within the case, and its value.
        medians: Median of each measure, in seconds or bytes.
        files: Files of the checkpoint; None where they were not counted.
    """

    point_id: str
    name: str
    options: dict[str, Any]
    medians: dict[str, float]
    files: int | None = None


class Case(ResultModel):
    """Points that do the same work, so that one can be chosen.

    Attributes:
        name: The benchmark, and what else its points share.
        rounds: Repeats of the point that has most of them.
        options: Options that vary, with their values.
        points: Its points, in the order of the suite.
        rankings: A ranking for the goal, then one for each measure.
        effects: Effects on the goal.
        front: Ids of the points that no other beats in save, load and bytes together.
        front_of: The measures of the front.
        recommendation: What is recommended; None where nothing can be.
        left_out: Points that cannot be recommended.
        remarks: What else a reader must know: flags of repeats, and the like.
        not_measured: What the run says nothing of.
        not_alone: Repeats that were measured while others were on the same machine.
    """

    name: str
    rounds: int
    options: dict[str, tuple[Any, ...]]
    points: tuple[PointInfo, ...]
    rankings: tuple[Ranking, ...]
    effects: Effects
    front: tuple[str, ...]
    front_of: tuple[str, ...]
    recommendation: Recommendation | None
    left_out: tuple[LeftOut, ...]
    remarks: tuple[str, ...]
    not_measured: tuple[str, ...]
    not_alone: int = 0

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
