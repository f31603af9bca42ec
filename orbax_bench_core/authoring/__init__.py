"""Authoring interface: base classes and context of a benchmark."""

from orbax_bench_core.authoring.context import (
    Against,
    Drill,
    Killed,
    TestContext,
    UnmetNeed,
    Verifier,
    optional_module,
)
from orbax_bench_core.authoring.generator import (
    LATER,
    BenchmarkOptions,
    BenchmarksGenerator,
    Sweepable,
    TestResult,
    VerificationError,
    benchmark_options,
)
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
