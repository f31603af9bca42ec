"""What to measure next, and what to conclude: sweeps, comparisons, soaks, drills, releases.

The names below are loaded when they are first used: a run compares and drills nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbax_bench_core.doors import late

if TYPE_CHECKING:
    from orbax_bench_core.execute import RunSettings as RunSettings
    from orbax_bench_core.experiments.comparison import Comparison as Comparison
    from orbax_bench_core.experiments.comparison import PairJudged as PairJudged
    from orbax_bench_core.experiments.comparison import ab as ab
    from orbax_bench_core.experiments.comparison import compare_arms as compare_arms
    from orbax_bench_core.experiments.experiment import Conclusion as Conclusion
    from orbax_bench_core.experiments.experiment import Experiment as Experiment
    from orbax_bench_core.experiments.experiment import NothingFound as NothingFound
    from orbax_bench_core.experiments.experiment import answered as answered
    from orbax_bench_core.experiments.experiment import begin as begin
    from orbax_bench_core.experiments.experiment import load_for as load_for
    from orbax_bench_core.experiments.experiment import measure_points as measure_points
    from orbax_bench_core.experiments.experiment import perform as perform
    from orbax_bench_core.experiments.room import NoRoom as NoRoom
    from orbax_bench_core.experiments.soaking import Drills as Drills
    from orbax_bench_core.experiments.soaking import SoakGoal as SoakGoal
    from orbax_bench_core.experiments.soaking import Soaking as Soaking
    from orbax_bench_core.experiments.soaking import recovery as recovery
    from orbax_bench_core.experiments.soaking import soak as soak
    from orbax_bench_core.experiments.sweeping import Study as Study
    from orbax_bench_core.experiments.sweeping import Sweep as Sweep
    from orbax_bench_core.experiments.sweeping import run as run
    from orbax_bench_core.experiments.sweeping import study as study

__getattr__ = late(
    __name__,
    {
        "execute": "RunSettings",
        "experiments.comparison": "Comparison PairJudged ab compare_arms",
        "experiments.experiment": (
            "Conclusion Experiment NothingFound answered begin load_for measure_points perform"
        ),
        "experiments.room": "NoRoom",
        "experiments.soaking": "Drills SoakGoal Soaking recovery soak",
        "experiments.sweeping": "Study Sweep run study",
    },
)
