"""Model of `best.json`: rankings, effects, front, advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import pydantic

from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.files import ResultModel
from orbax_bench_core.reasons import NO_REASON, Reasons
from orbax_bench_core.records import Verified

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
        """`s` or `B`, or nothing for a goal of measures with both."""
        units = {"B" if name in ("bytes", "memory") else "s" for name in self.weights}
        return units.pop() if len(units) == 1 else ""


class Ranked(ResultModel):
    """A point in a ranking."""

    point_id: str
    rounds: int  # rounds with a value
    median: float  # median of the goal, in its unit
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


class Effects(ResultModel):
    """Effects of the options on a goal."""

    goal: Goal
    rounds: int  # rounds that they were estimated from, in which every point has a value
    processes: int  # worker processes that measured these rounds
    main: tuple[OptionContrast, ...]  # main effects
    interactions: tuple[OptionContrast, ...]  # all pairs of options
    # why there are none: too few worker processes, or a design too large to be solved
    unknown: Literal["", "few processes", "too large"] = ""
    confounded: tuple[str, ...] = ()  # options whose effect cannot be told from that of others
    has_pairs: bool = True  # whether enough combinations were measured to tell pairs of options


_MOST_TIMES: Final = 10
_FEW_S: Final = 600
_MOST_S: Final = 8 * 3600
"""Nobody measures more than ten times the rounds that there are to decide a tie, unless that takes
minutes, and none that take a night or more."""


class Confidence(ResultModel):
    """Confidence that the recommended point is within 5 % of the best."""

    # chance that another is over 5 % better, an upper bound; None if it is unknown
    risk: float | None
    rounds: int  # rounds that it is computed from
    processes: int = 1  # worker processes that measured these
    missing: int | None  # further rounds after which the risk would be 5 %; None if nobody knows
    missing_s: float | None = None  # seconds that these take, as those took that were measured
    # share by which another may be better at a risk of 5 %; None if it is unknown
    within: float | None = None
    # standard deviation of a value from process to process, as a share; None if it is unknown
    noise: float | None

    @property
    def is_cheap(self) -> bool:
        """Whether the rounds that are missing are worth their time."""
        if self.missing is None:
            return False
        is_more = self.missing > _MOST_TIMES * self.rounds
        return (self.missing_s or 0.0) <= (_FEW_S if is_more else _MOST_S)


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
    benchmark: str  # its benchmark: the name of a built-in, or the path of a class
    # what decided among the ties: the mean, or among those within 1 % bytes, files, and the number
    # of changes to Orbax's defaults
    chosen_by: Literal["mean", "size and defaults"]
    # how to ask Orbax for it, by the interface that was measured; empty if that is not known
    code: str
    short_code: str  # its lines that set what was varied
    suite: str  # the same as an entry of a suite's `benchmarks`
    differences: tuple[OptionDifference, ...]  # how it differs from what Orbax does by default
    defaults_from: str  # release whose defaults these are
    default_point: str | None  # id of the point with Orbax's defaults; None if none was measured
    # ratio of the goal to that of the point with Orbax's defaults, and its interval; None if it
    # could not be compared, or is that point
    against_defaults: tuple[float, float, float] | None
    confidence: Confidence  # how surely it is within 5 % of the best
    verified: Verified  # what its restored values were compared with


class LeftOut(ResultModel):
    """A point that cannot be recommended."""

    point_id: str
    name: str  # its name
    # repeats that failed, no repeat yet, no value of the goal, rounds of fewer than half, peak
    # memory that is unknown or above the bound
    why: Literal["failed", "none yet", "not the goal", "few rounds", "memory unknown", "memory"]
    count: int = 0  # repeats that failed, or rounds with a value
    total: int = 0  # of so many
    error: str = ""  # error of the first repeat that failed
    memory_bytes: float | None = None  # its peak memory


class Remark(ResultModel):
    """A doubt about the repeats of some points."""

    # times that may not be what they claim, repeats that passed in a second try, values that were
    # not compared, memory that a worker keeps from other points
    kind: Literal["flagged", "retried", "not verified", "memory reused"]
    points: tuple[str, ...] = ()  # names of the points
    repeats: int = 0  # repeats of theirs that it is about
    flags: Reasons = NO_REASON  # each trouble once
    verified: Verified = "saved"  # what restored values were compared with
    # whether the recommendation is still best or tied without flagged repeats, or no longer
    # measured then
    without: Literal["same", "behind", "nothing left"] = "same"
    ahead: str = ""  # name of the point that would be ahead of it


class Unmeasured(ResultModel):
    """Limits of what a case says."""

    options: dict[str, Any]  # options that did not vary
    measures: tuple[str, ...]  # measures that no repeat has
    points: tuple[str, ...]  # names of points without a repeat that passed
    skipped: tuple[str, ...]  # names of points that the suite skips
    cpu_devices: bool  # whether all devices were CPUs


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
    remarks: tuple[Remark, ...]  # doubts about repeats
    unmeasured: Unmeasured  # what the run says nothing about
    not_alone: int = 0  # repeats that were measured while others were on the same machine

    @property
    def ranking(self) -> Ranking:
        """The ranking for the goal."""
        return self.rankings[0]


class Best(ResultModel):
    """Which options to take, for each case of a run.

    Attributes:
        schema_version: Version of this layout. Version 1 had sentences in the place of codes,
            version 2 in that of flags.
        run_id: The run.
        suite: Name of its suite.
        suite_file: Where the suite came from.
        flags: Flags of the command that changed it.
        interleaved: Whether each round measured every point, so that rounds are pairs.
        goal: The goal.
        level: Level of ties and intervals.
        peak_memory_bytes: Most memory that a point may take; None without a bound.
        cases: The cases with two points or more.
    """

    schema_version: Literal[2, 3] = 3
    run_id: str
    suite: str
    suite_file: str
    flags: tuple[str, ...] = pydantic.Field(default=(), exclude_if=lambda found: not found)
    interleaved: bool
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
