"""Expands a suite into its sweep points."""

from orbax_bench_components.plan_sweep.component import plan_sweep as plan_sweep
