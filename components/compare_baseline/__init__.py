"""The compare-baseline component."""

from orbax_bench_components.compare_baseline.component import compare_baseline as compare_baseline
