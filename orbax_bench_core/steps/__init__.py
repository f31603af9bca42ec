"""Steps of a run: planning, point, comparison, search, report.

The names below are loaded when they are first used: a run compares, drills and launches nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from orbax_bench_core.execute import RunSettings
    from orbax_bench_core.steps.comparison import (
        Comparison,
        PairJudged,
        compare_arms,
        usual_minutes,
    )
    from orbax_bench_core.steps.conclusions import (
        publish_async_study,
        publish_recovery,
        publish_search,
        publish_soak,
        publish_verdicts,
    )
    from orbax_bench_core.steps.experiments import (
        Conclusion,
        Experiment,
        NothingFound,
        begin,
        load_for,
        measure_points,
    )
    from orbax_bench_core.steps.launching import point_hosts
    from orbax_bench_core.steps.notifiers import Notifiers
    from orbax_bench_core.steps.planning import MOST_STEPS, batches, plan
    from orbax_bench_core.steps.point import ENDED, SAID, PointFailed, run_batch
    from orbax_bench_core.steps.programs import ab, run
    from orbax_bench_core.steps.recovering import Drills, recovery
    from orbax_bench_core.steps.reporting import answer_of, limits_of, publish
    from orbax_bench_core.steps.settling import settle
    from orbax_bench_core.steps.soaking import SoakGoal, Soaking, soak
    from orbax_bench_core.steps.sweeping import Study, Sweep, study

__all__ = [
    "ENDED",
    "MOST_STEPS",
    "SAID",
    "Comparison",
    "Conclusion",
    "Drills",
    "Experiment",
    "NothingFound",
    "Notifiers",
    "PairJudged",
    "PointFailed",
    "RunSettings",
    "SoakGoal",
    "Soaking",
    "Study",
    "Sweep",
    "ab",
    "answer_of",
    "batches",
    "begin",
    "compare_arms",
    "limits_of",
    "load_for",
    "measure_points",
    "plan",
    "point_hosts",
    "publish",
    "publish_async_study",
    "publish_recovery",
    "publish_search",
    "publish_soak",
    "publish_verdicts",
    "recovery",
    "run",
    "run_batch",
    "settle",
    "soak",
    "study",
    "usual_minutes",
]

_NAMES: Final = {
    "execute": "RunSettings",
    "steps.comparison": "Comparison PairJudged compare_arms usual_minutes",
    "steps.conclusions": (
        "publish_async_study publish_recovery publish_search publish_soak publish_verdicts"
    ),
    "steps.experiments": "Conclusion Experiment NothingFound begin load_for measure_points",
    "steps.launching": "point_hosts",
    "steps.notifiers": "Notifiers",
    "steps.planning": "MOST_STEPS batches plan",
    "steps.point": "ENDED PointFailed SAID run_batch",
    "steps.programs": "ab run",
    "steps.recovering": "Drills recovery",
    "steps.reporting": "answer_of limits_of publish",
    "steps.settling": "settle",
    "steps.soaking": "SoakGoal Soaking soak",
    "steps.sweeping": "Study Sweep study",
}
"""The names that come from each module."""

_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"orbax_bench_core.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
