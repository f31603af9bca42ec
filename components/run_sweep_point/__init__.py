"""The run-sweep-point component."""

from orbax_bench_components.run_sweep_point.component import run_sweep_point as run_sweep_point
