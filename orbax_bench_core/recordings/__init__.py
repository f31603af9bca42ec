"""Recorded training jobs: their diagnosis with the interval that fits, a suite, and a run."""

from orbax_bench_core.recordings.as_run import write_run as write_run
from orbax_bench_core.recordings.diagnosing import diagnose as diagnose
from orbax_bench_core.recordings.diagnosing import suite_like as suite_like
from orbax_bench_core.recordings.logs import read_job as read_job
