"""The limits of the machine and the storage that a run uses, measured once per run."""

from __future__ import annotations

from collections.abc import Callable

from orbax_bench_core.config.checkpoint import ArraySpec, leaves
from orbax_bench_core.config.errors import SuiteError
from orbax_bench_core.execute.limits.process import take_limits
from orbax_bench_core.results.record import Record
from orbax_bench_core.results.run_directory import RunDirectory

_MOST_BYTES = 64 << 20
"""Speeds hardly change beyond this, and the time that it takes to measure them does."""


def ensure_limits(run: RunDirectory, say: Callable[[str], None]) -> None:
    """Measures the limits of a run's storage, unless the run has them or has measured nothing.

    As many bytes are moved as the largest checkpoint of the run has, up to 64 MiB, by as many parts
    at once as its mesh has devices. A failure is said and otherwise changes nothing.

    Args:
        run: The run directory. Whoever calls this holds the measuring lock.
        say: Takes a line for people.
    """
    if run.read_limits() is not None:
        return
    largest = max(run.records(), key=_num_bytes, default=None)
    if largest is None or not _num_bytes(largest):
        return
    say("measuring the limits of this machine and storage (--no-limits skips this)")
    try:
        limits = take_limits(
            str(run.root),
            min(_num_bytes(largest), _MOST_BYTES),
            largest.point.num_devices,
            dtype=_dtype(largest),
        )
        run.write_limits(limits)
    except (SuiteError, OSError) as failure:
        say(f"no limits: {failure}")


def _num_bytes(record: Record) -> int:
    return 0 if record.state is None else record.state.num_bytes


def _dtype(record: Record) -> str:
    """Returns the dtype of the largest array of the record's spec."""
    arrays = [leaf for _, leaf in leaves(record.point.checkpoint.spec or {})]
    largest = max(
        (leaf for leaf in arrays if isinstance(leaf, ArraySpec)),
        key=lambda leaf: leaf.num_bytes,
        default=None,
    )
    return "float32" if largest is None else largest.dtype
