"""The noise passport: how noisy operations are here, so that a comparison can be planned."""

from orbax_bench_core.analysis.noise.forecast import Expectation, expected, forecast
from orbax_bench_core.analysis.noise.measure import from_records
from orbax_bench_core.analysis.noise.passport import Noise, Passport, default_path, find, load, save
from orbax_bench_core.analysis.noise.view import calibration_of

__all__ = [
    "Expectation",
    "Noise",
    "Passport",
    "calibration_of",
    "default_path",
    "expected",
    "find",
    "forecast",
    "from_records",
    "load",
    "save",
]
