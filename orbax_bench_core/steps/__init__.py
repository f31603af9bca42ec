"""Steps of a run: planning, point, comparison, report, release search."""

from orbax_bench_core.execute import CannotRecord, RunSettings, Session
from orbax_bench_core.steps.comparison import Judged, compare_arms
from orbax_bench_core.steps.fixture import ensure_checkpoint
from orbax_bench_core.steps.launching import PointHosts, launch_batch, point_hosts
from orbax_bench_core.steps.measuring import measure_points
from orbax_bench_core.steps.outlets import Outlets, comparison_exit_code, stored_exit_code
from orbax_bench_core.steps.planning import MOST_STEPS, batches, plan, points_in
from orbax_bench_core.steps.point import SAID, BatchOutcome, PointFailed, measure_batch, run_batch
from orbax_bench_core.steps.prepare import download, mirror, model_arrays, write_shardings
from orbax_bench_core.steps.programs import ab, run
from orbax_bench_core.steps.recovering import (
    check_drilled,
    drill_suite,
    load_drilled,
    recovery,
)
from orbax_bench_core.steps.release_search import (
    Compared,
    Found,
    Release,
    comparing_releases,
    expected_comparisons,
    find_releases,
    kept_requirements,
    search_releases,
)
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
from orbax_bench_core.steps.upgrading import Upgrade, make_both, plan_upgrade

__all__ = [
    "MOST_STEPS",
    "PAGE",
    "SAID",
    "BatchOutcome",
    "CannotRecord",
    "Compared",
    "Found",
    "Judged",
    "Outlets",
    "PointFailed",
    "PointHosts",
    "Release",
    "RunSettings",
    "Session",
    "SoakGoal",
    "Upgrade",
    "ab",
    "answer_of",
    "batches",
    "check_drilled",
    "check_soak",
    "compare_arms",
    "comparing_releases",
    "comparison_exit_code",
    "download",
    "drill_suite",
    "ensure_checkpoint",
    "expected_comparisons",
    "find_releases",
    "kept_requirements",
    "launch_batch",
    "limits_of",
    "load_drilled",
    "load_writers",
    "make_both",
    "measure_batch",
    "measure_points",
    "mirror",
    "model_arrays",
    "plan",
    "plan_upgrade",
    "point_hosts",
    "points_in",
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
    "search_releases",
    "settle",
    "soak",
    "soak_points",
    "stored_exit_code",
    "write_shardings",
]
