"""Leases of a run: who measures all of it, a point or a batch of points, and may write records."""

from orbax_bench_core.leases.lease import PACE, WHOLE, Fence, LeaseLost, batch_name, held

__all__ = [
    "PACE",
    "WHOLE",
    "Fence",
    "LeaseLost",
    "batch_name",
    "held",
]
