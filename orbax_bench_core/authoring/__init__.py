"""What a benchmark author imports."""

from orbax_bench_core.authoring.binding import benchmark_options as benchmark_options
from orbax_bench_core.authoring.context import TestContext as TestContext
from orbax_bench_core.authoring.generator import BenchmarksGenerator as BenchmarksGenerator
from orbax_bench_core.authoring.options import BenchmarkOptions as BenchmarkOptions
from orbax_bench_core.authoring.result import TestResult as TestResult
from orbax_bench_core.authoring.result import UnmetNeed as UnmetNeed
from orbax_bench_core.authoring.result import VerificationError as VerificationError
