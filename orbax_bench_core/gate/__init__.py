"""The statistical gate: whether a difference between two arms is one.

Plain arrays in, verdicts out; nothing here knows of files, runs or JAX.
"""

from orbax_bench_core.gate.blocks import random_labels
from orbax_bench_core.gate.calibration import RejectRate, reject_rate
from orbax_bench_core.gate.decide import decide
from orbax_bench_core.gate.health import health
from orbax_bench_core.gate.judge import (
    false_discovery,
    judge,
    point_settled,
    point_word,
    primary_operations,
)
from orbax_bench_core.gate.plan import Plan, expected_operations, plan, plan_operations
from orbax_bench_core.gate.unpaired import decide_unpaired, run_log_ratio

__all__ = [
    "Plan",
    "RejectRate",
    "decide",
    "decide_unpaired",
    "expected_operations",
    "false_discovery",
    "health",
    "judge",
    "plan",
    "plan_operations",
    "point_settled",
    "point_word",
    "primary_operations",
    "random_labels",
    "reject_rate",
    "run_log_ratio",
]
