"""Leases: who measures a run or points of it and may write records, and who has a machine."""

from orbax_bench_core.leases.lease import PACE, WHOLE, Fence, LeaseLost, batch_name, held, turn

__all__ = [
    "PACE",
    "WHOLE",
    "Fence",
    "LeaseLost",
    "batch_name",
    "held",
    "turn",
]
