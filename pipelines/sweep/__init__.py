"""Measures every point of a suite, each in a step of its own."""

from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.sweep.pipeline import build as build

sweep = build(Placement())
"""The pipeline as it runs on this machine."""
