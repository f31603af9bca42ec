"""Noise of measurements in a place (its passport), A/A tests, and the length of comparisons."""

from orbax_bench_core.analysis.noise.calibration import calibration_of as calibration_of
from orbax_bench_core.analysis.noise.forecasts import expected_minutes as expected_minutes
from orbax_bench_core.analysis.noise.forecasts import forecast as forecast
from orbax_bench_core.analysis.noise.forecasts import processes_of as processes_of
from orbax_bench_core.analysis.noise.forecasts import usual_minutes as usual_minutes
from orbax_bench_core.analysis.noise.measure import between_workers as between_workers
from orbax_bench_core.analysis.noise.passport import Passport as Passport
from orbax_bench_core.analysis.noise.passport import find as find
from orbax_bench_core.analysis.noise.passport import load as load
from orbax_bench_core.analysis.noise.passport import save as save
from orbax_bench_core.analysis.noise.view import calibration_document as calibration_document
