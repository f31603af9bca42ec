"""Soak: growth per save of memory, descriptors, threads and times, and the verdict on a limit."""

from orbax_bench_core.analysis.soak.model import Soak, SoakWord
from orbax_bench_core.analysis.soak.soak import (
    DROPPED,
    FEWEST,
    LIMIT_MIB,
    lives_of,
    longest,
    slope_of,
    soak_of,
    word_of,
)
from orbax_bench_core.analysis.soak.view import headline, soak_document, soak_section

__all__ = [
    "DROPPED",
    "FEWEST",
    "LIMIT_MIB",
    "Soak",
    "SoakWord",
    "headline",
    "lives_of",
    "longest",
    "slope_of",
    "soak_document",
    "soak_of",
    "soak_section",
    "word_of",
]
