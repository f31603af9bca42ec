"""The calibrate component."""

from orbax_bench_components.calibrate.component import calibrate as calibrate
