"""Authoring interface: base classes and context of a benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbax_bench_core.interface import (
    LATER,
    Against,
    BenchmarkOptions,
    BenchmarksGenerator,
    Drill,
    Killed,
    Sweepable,
    TestContext,
    TestResult,
    UnmetNeed,
    VerificationError,
    Verifier,
    benchmark_options,
    optional_module,
)

if TYPE_CHECKING:
    from orbax_bench_core.authoring.suite import TestSuite

__all__ = [
    "LATER",
    "Against",
    "BenchmarkOptions",
    "BenchmarksGenerator",
    "Drill",
    "Killed",
    "Sweepable",
    "TestContext",
    "TestResult",
    "TestSuite",
    "UnmetNeed",
    "VerificationError",
    "Verifier",
    "benchmark_options",
    "optional_module",
]


def __getattr__(name: str) -> Any:
    """Loads what measures when it is asked for: a worker imports this module too."""
    if name == "TestSuite":
        from orbax_bench_core.authoring.suite import TestSuite

        return TestSuite
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
