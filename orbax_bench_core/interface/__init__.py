"""Base classes and context of a benchmark: what `authoring` gives to those who write one."""

from orbax_bench_core.interface.context import (
    Against,
    Drill,
    Killed,
    TestContext,
    UnmetNeed,
    Verifier,
    optional_module,
)
from orbax_bench_core.interface.generator import (
    LATER,
    BenchmarkOptions,
    BenchmarksGenerator,
    Sweepable,
    TestResult,
    VerificationError,
    benchmark_options,
)

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
    "UnmetNeed",
    "VerificationError",
    "Verifier",
    "benchmark_options",
    "optional_module",
]
