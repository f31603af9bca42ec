"""The plan-sweep component."""

from orbax_bench_components.plan_sweep.component import plan_sweep as plan_sweep
