"""The run-sweep-point component."""

from .component import run_sweep_point as run_sweep_point
