"""Storage and memory limits: what this machine can do with a checkpoint's bytes, without Orbax."""

from orbax_bench_core.limits.model import Limits, read, write
from orbax_bench_core.limits.probes import PROBES
from orbax_bench_core.limits.process import ensure_limits, take_limits
from orbax_bench_core.limits.share import (
    PROBE_HEADINGS,
    OperationLimits,
    limit_columns,
    operation_limits,
    probe_cells,
)

__all__ = [
    "PROBES",
    "PROBE_HEADINGS",
    "Limits",
    "OperationLimits",
    "ensure_limits",
    "limit_columns",
    "operation_limits",
    "probe_cells",
    "read",
    "take_limits",
    "write",
]
