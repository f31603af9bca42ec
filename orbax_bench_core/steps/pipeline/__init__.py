"""Steps of a pipeline: the one body of each, for every engine that calls them.

A step takes text, paths and flags, works on the run directory, and returns its outputs with what is
known of them. Kubeflow components, Airflow tasks and the command `orbax-bench step` only hand
these in and out.
"""

from orbax_bench_core.steps.pipeline.answers import best as best
from orbax_bench_core.steps.pipeline.answers import calibrate as calibrate
from orbax_bench_core.steps.pipeline.answers import inspect_checkpoint as inspect_checkpoint
from orbax_bench_core.steps.pipeline.answers import plan_save as plan_save
from orbax_bench_core.steps.pipeline.answers import recovery as recovery
from orbax_bench_core.steps.pipeline.answers import soak as soak
from orbax_bench_core.steps.pipeline.answers import study_async as study_async
from orbax_bench_core.steps.pipeline.component import FAILURES as FAILURES
from orbax_bench_core.steps.pipeline.component import ErrorsAsMessages as ErrorsAsMessages
from orbax_bench_core.steps.pipeline.component import as_component as as_component
from orbax_bench_core.steps.pipeline.ending import RunEnding as RunEnding
from orbax_bench_core.steps.pipeline.finishing import aggregate as aggregate
from orbax_bench_core.steps.pipeline.finishing import finish as finish
from orbax_bench_core.steps.pipeline.finishing import run_folder as run_folder
from orbax_bench_core.steps.pipeline.judging import NotPassed as NotPassed
from orbax_bench_core.steps.pipeline.judging import compare_baseline as compare_baseline
from orbax_bench_core.steps.pipeline.judging import enforce_verdict as enforce_verdict
from orbax_bench_core.steps.pipeline.judging import publish_baseline as publish_baseline
from orbax_bench_core.steps.pipeline.measurement import generate_checkpoint as generate_checkpoint
from orbax_bench_core.steps.pipeline.measurement import plan_sweep as plan_sweep
from orbax_bench_core.steps.pipeline.measurement import run_sweep_point as run_sweep_point
from orbax_bench_core.steps.pipeline.outputs import Outputs as Outputs
from orbax_bench_core.steps.retries import note_retried as note_retried
