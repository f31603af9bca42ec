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
    BenchmarksGenerator,
    TestResult,
    VerificationError,
    benchmark_options,
)
from orbax_bench_core.interface.options import LATER, BenchmarkOptions, Sweepable

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
