"""Recovery drills: phases from a kill to the first step, steps lost, and how many came back."""

from orbax_bench_core.analysis.recovery.drills import PhaseName, Recovery, recovery_of
from orbax_bench_core.analysis.recovery.view import (
    headline,
    lacking,
    recovery_document,
    recovery_section,
)

__all__ = [
    "PhaseName",
    "Recovery",
    "headline",
    "lacking",
    "recovery_document",
    "recovery_of",
    "recovery_section",
]
