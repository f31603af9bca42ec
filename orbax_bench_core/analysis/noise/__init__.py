"""Noise of measurements in a place (its passport), A/A tests, and the length of comparisons."""

from orbax_bench_core.analysis.noise.calibration import calibration_of
from orbax_bench_core.analysis.noise.forecasts import (
    expected_minutes,
    forecast,
    processes_of,
    usual_minutes,
)
from orbax_bench_core.analysis.noise.measure import between_workers
from orbax_bench_core.analysis.noise.passport import Passport, find, load, save

__all__ = [
    "Passport",
    "between_workers",
    "calibration_of",
    "expected_minutes",
    "find",
    "forecast",
    "load",
    "processes_of",
    "save",
    "usual_minutes",
]
