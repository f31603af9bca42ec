"""The best component."""

from orbax_bench_components.answers import best as best
