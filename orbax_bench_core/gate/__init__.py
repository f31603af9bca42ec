"""The statistical gate: verdicts on the difference between two arms.

Plain arrays in, verdicts out; nothing here knows of files, runs or JAX.
"""

from orbax_bench_core.gate.blocks import random_labels, read_blocks
from orbax_bench_core.gate.calibration import reject_rate
from orbax_bench_core.gate.decide import Decision, Doubt, decide, together
from orbax_bench_core.gate.excess import Excess
from orbax_bench_core.gate.health import find_regimes, health
from orbax_bench_core.gate.judge import Judged, false_discovery, judge, primary_operations
from orbax_bench_core.gate.location import holm_levels
from orbax_bench_core.gate.noise import NORMAL_MAD
from orbax_bench_core.gate.plan import plan_operations
from orbax_bench_core.gate.power import Chances, chances_of, detectable
from orbax_bench_core.gate.processes import spread_over_processes
from orbax_bench_core.gate.rank_test import log_ratio
from orbax_bench_core.gate.unpaired import arrangements, decide_unpaired, run_log_ratio
from orbax_bench_core.gate.verdict import (
    Endpoint,
    FailureVerdict,
    SeriesHealth,
    StallCount,
    StallVerdict,
    Verdict,
    Word,
)

__all__ = [
    "NORMAL_MAD",
    "Chances",
    "Decision",
    "Doubt",
    "Endpoint",
    "Excess",
    "FailureVerdict",
    "Judged",
    "SeriesHealth",
    "StallCount",
    "StallVerdict",
    "Verdict",
    "Word",
    "arrangements",
    "chances_of",
    "decide",
    "decide_unpaired",
    "detectable",
    "false_discovery",
    "find_regimes",
    "health",
    "holm_levels",
    "judge",
    "log_ratio",
    "plan_operations",
    "primary_operations",
    "random_labels",
    "read_blocks",
    "reject_rate",
    "run_log_ratio",
    "spread_over_processes",
    "together",
]
