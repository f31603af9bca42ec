"""Steps of a run: planning, point, comparison, search, report.

The names below are loaded when they are first used: a run compares, drills and launches nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from orbax_bench_core.execute import RunSettings as RunSettings
    from orbax_bench_core.steps.comparison import Comparison as Comparison
    from orbax_bench_core.steps.comparison import PairJudged as PairJudged
    from orbax_bench_core.steps.comparison import ab as ab
    from orbax_bench_core.steps.comparison import compare_arms as compare_arms
    from orbax_bench_core.steps.experiments import Conclusion as Conclusion
    from orbax_bench_core.steps.experiments import Experiment as Experiment
    from orbax_bench_core.steps.experiments import NothingFound as NothingFound
    from orbax_bench_core.steps.experiments import answered as answered
    from orbax_bench_core.steps.experiments import begin as begin
    from orbax_bench_core.steps.experiments import load_for as load_for
    from orbax_bench_core.steps.experiments import measure_points as measure_points
    from orbax_bench_core.steps.notifiers import Notifiers as Notifiers
    from orbax_bench_core.steps.planning import MOST_STEPS as MOST_STEPS
    from orbax_bench_core.steps.planning import batches as batches
    from orbax_bench_core.steps.planning import plan as plan
    from orbax_bench_core.steps.point import ENDED as ENDED
    from orbax_bench_core.steps.point import SAID as SAID
    from orbax_bench_core.steps.point import PointFailed as PointFailed
    from orbax_bench_core.steps.point import run_batch as run_batch
    from orbax_bench_core.steps.pruning import Pruning as Pruning
    from orbax_bench_core.steps.reporting import publish as publish
    from orbax_bench_core.steps.reporting import publish_answer as publish_answer
    from orbax_bench_core.steps.reporting import publish_verdicts as publish_verdicts
    from orbax_bench_core.steps.reporting import report_of as report_of
    from orbax_bench_core.steps.reporting import settle as settle
    from orbax_bench_core.steps.reporting import write_answer as write_answer
    from orbax_bench_core.steps.soaking import Drills as Drills
    from orbax_bench_core.steps.soaking import SoakGoal as SoakGoal
    from orbax_bench_core.steps.soaking import Soaking as Soaking
    from orbax_bench_core.steps.soaking import recovery as recovery
    from orbax_bench_core.steps.soaking import soak as soak
    from orbax_bench_core.steps.sweeping import Study as Study
    from orbax_bench_core.steps.sweeping import Sweep as Sweep
    from orbax_bench_core.steps.sweeping import run as run
    from orbax_bench_core.steps.sweeping import study as study

_NAMES: Final = {
    "execute": "RunSettings",
    "steps.comparison": "Comparison PairJudged ab compare_arms",
    "steps.experiments": (
        "Conclusion Experiment NothingFound answered begin load_for measure_points"
    ),
    "steps.notifiers": "Notifiers",
    "steps.planning": "MOST_STEPS batches plan",
    "steps.point": "ENDED PointFailed SAID run_batch",
    "steps.pruning": "Pruning",
    "steps.reporting": ("publish publish_answer publish_verdicts report_of settle write_answer"),
    "steps.soaking": "Drills SoakGoal Soaking recovery soak",
    "steps.sweeping": "Study Sweep run study",
}
"""The names that come from each module."""

_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"orbax_bench_core.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
