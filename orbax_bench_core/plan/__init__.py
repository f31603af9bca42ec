"""Checkpoint accounting: parameters and shares of a save, known before anything is written."""

from orbax_bench_core.plan.save_count import orbax_save_count

__all__ = ["orbax_save_count"]
