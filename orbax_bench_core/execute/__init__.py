"""The orchestrator, which never imports JAX, and the worker, which does."""

from orbax_bench_core.execute.group import CannotRecord
from orbax_bench_core.execute.isolation import LOCK_FILE, allocator_settings, measuring_lock
from orbax_bench_core.execute.pairs import run_pairs
from orbax_bench_core.execute.runner import Progress, RunSettings, run_points

__all__ = [
    "LOCK_FILE",
    "CannotRecord",
    "Progress",
    "RunSettings",
    "allocator_settings",
    "measuring_lock",
    "run_pairs",
    "run_points",
]
