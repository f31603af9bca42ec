"""Recorded training jobs: their diagnosis with the interval that fits, and a suite like them."""

from orbax_bench_core.recordings.diagnosing import diagnose as diagnose
from orbax_bench_core.recordings.diagnosing import write_suite as write_suite
