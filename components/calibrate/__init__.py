"""The calibrate component."""

from orbax_bench_components.answers import calibrate as calibrate
