"""What a benchmark author imports."""

from orbax_bench_core.authoring.context import TestContext as TestContext
from orbax_bench_core.authoring.generator import BenchmarksGenerator as BenchmarksGenerator
from orbax_bench_core.authoring.generator import TestResult as TestResult
from orbax_bench_core.authoring.generator import UnmetNeed as UnmetNeed
from orbax_bench_core.authoring.generator import VerificationError as VerificationError
from orbax_bench_core.authoring.generator import benchmark_options as benchmark_options
from orbax_bench_core.authoring.options import BenchmarkOptions as BenchmarkOptions
