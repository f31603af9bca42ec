"""Noise of measurements in a place (its passport), A/A tests, and the length of comparisons."""

from orbax_bench_core.analysis.noise.components import (
    Component,
    between_workers,
    expected_bound,
)
from orbax_bench_core.analysis.noise.forecast import (
    Expectation,
    expected,
    expected_minutes,
    forecast,
    process_noise,
    processes_of,
    run_minutes,
    usual_minutes,
    wait,
)
from orbax_bench_core.analysis.noise.measure import from_records
from orbax_bench_core.analysis.noise.passport import Noise, Passport, default_path, find, load, save
from orbax_bench_core.analysis.noise.view import calibration_document, calibration_of

__all__ = [
    "Component",
    "Expectation",
    "Noise",
    "Passport",
    "between_workers",
    "calibration_document",
    "calibration_of",
    "default_path",
    "expected",
    "expected_bound",
    "expected_minutes",
    "find",
    "forecast",
    "from_records",
    "load",
    "process_noise",
    "processes_of",
    "run_minutes",
    "save",
    "usual_minutes",
    "wait",
]
