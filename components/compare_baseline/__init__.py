"""Sets a run beside a baseline."""

from orbax_bench_components.compare_baseline.component import compare_baseline as compare_baseline
