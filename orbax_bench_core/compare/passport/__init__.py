"""The noise passport: how noisy operations are here, so that a comparison can be planned."""

from orbax_bench_core.compare.passport.files import default_path, find, load, save
from orbax_bench_core.compare.passport.forecast import Expectation, expected, forecast
from orbax_bench_core.compare.passport.measure import from_records
from orbax_bench_core.compare.passport.model import Noise, Passport

__all__ = [
    "Expectation",
    "Noise",
    "Passport",
    "default_path",
    "expected",
    "find",
    "forecast",
    "from_records",
    "load",
    "save",
]
