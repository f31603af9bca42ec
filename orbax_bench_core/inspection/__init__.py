"""Inspection of checkpoints: commit state, damage, chunks and loads, without loading an array."""

from orbax_bench_core.inspection.look import HostReads, Inspection, inspect_checkpoint
from orbax_bench_core.inspection.view import inspection_document

__all__ = ["HostReads", "Inspection", "inspect_checkpoint", "inspection_document"]
