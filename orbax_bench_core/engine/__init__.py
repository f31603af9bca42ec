"""Steps of a pipeline: the one body of each, for every engine that calls them.

A step takes text, paths and flags, works on the run directory, and returns its outputs with what is
known of them. Kubeflow components, Airflow tasks and the command `orbax-bench step` only hand
these in and out.
"""

from orbax_bench_core.engine.answers import best as best
from orbax_bench_core.engine.answers import calibrate as calibrate
from orbax_bench_core.engine.answers import inspect_checkpoint as inspect_checkpoint
from orbax_bench_core.engine.answers import plan_save as plan_save
from orbax_bench_core.engine.answers import recovery as recovery
from orbax_bench_core.engine.answers import soak as soak
from orbax_bench_core.engine.answers import study_async as study_async
from orbax_bench_core.engine.component import FAILURES as FAILURES
from orbax_bench_core.engine.component import ErrorsAsMessages as ErrorsAsMessages
from orbax_bench_core.engine.component import as_component as as_component
from orbax_bench_core.engine.ending import RunEnding as RunEnding
from orbax_bench_core.engine.finishing import aggregate as aggregate
from orbax_bench_core.engine.finishing import finish as finish
from orbax_bench_core.engine.finishing import run_folder as run_folder
from orbax_bench_core.engine.judging import NotPassed as NotPassed
from orbax_bench_core.engine.judging import compare_baseline as compare_baseline
from orbax_bench_core.engine.judging import enforce_verdict as enforce_verdict
from orbax_bench_core.engine.judging import publish_baseline as publish_baseline
from orbax_bench_core.engine.measurement import generate_checkpoint as generate_checkpoint
from orbax_bench_core.engine.measurement import plan_sweep as plan_sweep
from orbax_bench_core.engine.measurement import run_sweep_point as run_sweep_point
from orbax_bench_core.engine.outputs import Outputs as Outputs
from orbax_bench_core.engine.planning import MOST_STEPS as MOST_STEPS
from orbax_bench_core.engine.planning import batches as batches
from orbax_bench_core.engine.point import ENDED as ENDED
from orbax_bench_core.engine.point import SAID as SAID
from orbax_bench_core.engine.point import PointFailed as PointFailed
from orbax_bench_core.engine.point import run_batch as run_batch
