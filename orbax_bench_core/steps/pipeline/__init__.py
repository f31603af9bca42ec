"""Steps of a pipeline: the one body of each, for every engine that calls them.

A step takes text, paths and flags, works on the run directory, and returns its outputs with what is
known of them. Kubeflow components, Airflow tasks and the command `orbax-bench step` only hand
these in and out.
"""

from orbax_bench_core.steps.pipeline.answers import (
    as_component,
    best,
    calibrate,
    inspect_checkpoint,
    plan_save,
    recovery,
    soak,
    study_async,
)
from orbax_bench_core.steps.pipeline.comparison import (
    compare_baseline,
    enforce_verdict,
    publish_baseline,
)
from orbax_bench_core.steps.pipeline.finishing import aggregate, finish, run_folder
from orbax_bench_core.steps.pipeline.measurement import (
    generate_checkpoint,
    plan_sweep,
    run_sweep_point,
)
from orbax_bench_core.steps.pipeline.outputs import (
    FAILURES,
    ErrorsAsMessages,
    NotPassed,
    Outputs,
    note_retried,
)

__all__ = [
    "FAILURES",
    "ErrorsAsMessages",
    "NotPassed",
    "Outputs",
    "aggregate",
    "as_component",
    "best",
    "calibrate",
    "compare_baseline",
    "enforce_verdict",
    "finish",
    "generate_checkpoint",
    "inspect_checkpoint",
    "note_retried",
    "plan_save",
    "plan_sweep",
    "publish_baseline",
    "recovery",
    "run_folder",
    "run_sweep_point",
    "soak",
    "study_async",
]
