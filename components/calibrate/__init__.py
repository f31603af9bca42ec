"""Checks the gate on runs in which nothing changed."""

from orbax_bench_components.calibrate.component import calibrate as calibrate
