"""The run-sweep-point component, and the same for a launcher on Kubeflow."""

from orbax_bench_components.run_sweep_point.component import run_sweep_point as run_sweep_point
from orbax_bench_components.run_sweep_point.on_hosts import (
    run_sweep_point as run_sweep_point_on_hosts,
)

__all__ = ["run_sweep_point", "run_sweep_point_on_hosts"]
