"""Steps of a run: planning, point, comparison, search, report."""

from orbax_bench_core.execute import RunSettings
from orbax_bench_core.steps.comparison import Judged, compare_arms
from orbax_bench_core.steps.launching import point_hosts
from orbax_bench_core.steps.measuring import measure_points
from orbax_bench_core.steps.outlets import Outlets, comparison_exit_code, stored_exit_code
from orbax_bench_core.steps.planning import MOST_STEPS, batches, plan
from orbax_bench_core.steps.point import SAID, PointFailed, run_batch
from orbax_bench_core.steps.prepare import download, mirror, model_arrays, write_shardings
from orbax_bench_core.steps.programs import ab, run
from orbax_bench_core.steps.recovering import check_drilled, load_drilled, recovery
from orbax_bench_core.steps.reporting import (
    PAGE,
    answer_of,
    limits_of,
    load_writers,
    publish,
    publish_async_study,
    publish_recovery,
    publish_search,
    publish_soak,
    publish_verdicts,
    settle,
)
from orbax_bench_core.steps.search import search_points
from orbax_bench_core.steps.soaking import SoakGoal, check_soak, soak, soak_points

__all__ = [
    "MOST_STEPS",
    "PAGE",
    "SAID",
    "Judged",
    "Outlets",
    "PointFailed",
    "RunSettings",
    "SoakGoal",
    "ab",
    "answer_of",
    "batches",
    "check_drilled",
    "check_soak",
    "compare_arms",
    "comparison_exit_code",
    "download",
    "limits_of",
    "load_drilled",
    "load_writers",
    "measure_points",
    "mirror",
    "model_arrays",
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
    "search_points",
    "settle",
    "soak",
    "soak_points",
    "stored_exit_code",
    "write_shardings",
]
