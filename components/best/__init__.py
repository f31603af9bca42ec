"""The best component."""

from orbax_bench_components.best.component import best as best
