"""Steps of a run: planning, point, comparison, search, report.

The names below are loaded when they are first used: a run compares, drills and launches nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from orbax_bench_core.execute import RunSettings
    from orbax_bench_core.steps.comparison import Judged, compare_arms
    from orbax_bench_core.steps.conclusions import (
        publish_async_study,
        publish_recovery,
        publish_search,
        publish_soak,
        publish_verdicts,
    )
    from orbax_bench_core.steps.launching import point_hosts
    from orbax_bench_core.steps.measuring import measure_points
    from orbax_bench_core.steps.notifiers import Notifiers
    from orbax_bench_core.steps.planning import MOST_STEPS, batches, plan
    from orbax_bench_core.steps.point import ENDED, SAID, PointFailed, run_batch
    from orbax_bench_core.steps.programs import ab, run
    from orbax_bench_core.steps.recovering import check_drilled, load_drilled, recovery
    from orbax_bench_core.steps.reporting import answer_of, limits_of, load_writers, publish
    from orbax_bench_core.steps.settling import settle
    from orbax_bench_core.steps.soaking import SoakGoal, check_soak, soak, soak_points

__all__ = [
    "ENDED",
    "MOST_STEPS",
    "SAID",
    "Judged",
    "Notifiers",
    "PointFailed",
    "RunSettings",
    "SoakGoal",
    "ab",
    "answer_of",
    "batches",
    "check_drilled",
    "check_soak",
    "compare_arms",
    "limits_of",
    "load_drilled",
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
    "soak_points",
]

_MODULES: Final = {
    "ENDED": "steps.point",
    "Judged": "steps.comparison",
    "MOST_STEPS": "steps.planning",
    "Notifiers": "steps.notifiers",
    "PointFailed": "steps.point",
    "RunSettings": "execute",
    "SAID": "steps.point",
    "SoakGoal": "steps.soaking",
    "ab": "steps.programs",
    "answer_of": "steps.reporting",
    "batches": "steps.planning",
    "check_drilled": "steps.recovering",
    "check_soak": "steps.soaking",
    "compare_arms": "steps.comparison",
    "limits_of": "steps.reporting",
    "load_drilled": "steps.recovering",
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
    "soak_points": "steps.soaking",
}
"""The module that each name comes from."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"orbax_bench_core.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
