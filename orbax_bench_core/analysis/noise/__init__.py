"""Noise of measurements in a place (its passport), A/A tests, and the length of comparisons."""

from orbax_bench_core.analysis.noise.components import between_workers
from orbax_bench_core.analysis.noise.forecasts import (
    expected_minutes,
    forecast,
    processes_of,
    run_minutes,
    usual_minutes,
)
from orbax_bench_core.analysis.noise.passport import Passport, find, load, save
from orbax_bench_core.analysis.noise.view import calibration_of

__all__ = [
    "Passport",
    "between_workers",
    "calibration_of",
    "expected_minutes",
    "find",
    "forecast",
    "load",
    "processes_of",
    "run_minutes",
    "save",
    "usual_minutes",
]
