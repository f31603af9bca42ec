"""Storage and memory limits: what this machine can do with a checkpoint's bytes, without Orbax."""

from orbax_bench_core.limits.model import Limits, read, read_hosts, write
from orbax_bench_core.limits.probes import PROBES
from orbax_bench_core.limits.process import ensure_limits, take_limits
from orbax_bench_core.limits.share import (
    PROBE_HEADINGS,
    limit_columns,
    operation_limits,
    probe_cells,
    with_hosts,
)

__all__ = [
    "PROBES",
    "PROBE_HEADINGS",
    "Limits",
    "ensure_limits",
    "limit_columns",
    "operation_limits",
    "probe_cells",
    "read",
    "read_hosts",
    "take_limits",
    "with_hosts",
    "write",
]
