"""Steps of a run: planning, point, comparison, search, report.

The names below are loaded when they are first used: a run compares, drills and launches nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from orbax_bench_core.execute import RunSettings
    from orbax_bench_core.steps.comparison import Comparison, Judged, compare_arms, usual_minutes
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
    )
    from orbax_bench_core.steps.launching import point_hosts
    from orbax_bench_core.steps.measuring import measure_points
    from orbax_bench_core.steps.notifiers import Notifiers
    from orbax_bench_core.steps.planning import MOST_STEPS, batches, plan
    from orbax_bench_core.steps.point import ENDED, SAID, PointFailed, run_batch
    from orbax_bench_core.steps.programs import ab, run
    from orbax_bench_core.steps.recovering import Drills, recovery
    from orbax_bench_core.steps.reporting import answer_of, limits_of, load_writers, publish
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
    "Judged",
    "NothingFound",
    "Notifiers",
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
    "load_writers",
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

_MODULES: Final = {
    "Comparison": "steps.comparison",
    "Conclusion": "steps.experiments",
    "Drills": "steps.recovering",
    "ENDED": "steps.point",
    "Experiment": "steps.experiments",
    "Judged": "steps.comparison",
    "MOST_STEPS": "steps.planning",
    "NothingFound": "steps.experiments",
    "Notifiers": "steps.notifiers",
    "PointFailed": "steps.point",
    "RunSettings": "execute",
    "SAID": "steps.point",
    "Soaking": "steps.soaking",
    "Study": "steps.sweeping",
    "Sweep": "steps.sweeping",
    "SoakGoal": "steps.soaking",
    "ab": "steps.programs",
    "answer_of": "steps.reporting",
    "batches": "steps.planning",
    "begin": "steps.experiments",
    "compare_arms": "steps.comparison",
    "limits_of": "steps.reporting",
    "load_for": "steps.experiments",
    "load_writers": "steps.reporting",
    "measure_points": "steps.measuring",
    "plan": "steps.planning",
    "point_hosts": "steps.launching",
    "publish": "steps.reporting",
    "publish_async_study": "steps.conclusions",
    "publish_recovery": "steps.conclusions",
    "publish_search": "steps.conclusions",
    "publish_soak": "steps.conclusions",
    "publish_verdicts": "steps.conclusions",
    "recovery": "steps.recovering",
    "run": "steps.programs",
    "run_batch": "steps.point",
    "settle": "steps.settling",
    "soak": "steps.soaking",
    "study": "steps.sweeping",
    "usual_minutes": "steps.comparison",
}
"""The module that each name comes from."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"orbax_bench_core.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
