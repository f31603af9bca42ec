"""Measures every point of a suite, each in a step of its own."""

from orbax_bench_pipelines.sweep.pipeline import sweep as sweep
