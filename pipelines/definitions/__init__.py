"""The pipelines by name; kfp is imported when one is built."""

from orbax_bench_core.errors import UserError, did_you_mean
from orbax_bench_pipelines.definitions.pipeline import Finished, Pipeline
from orbax_bench_pipelines.definitions.pipelines import (
    ASYNC_STUDY,
    CALIBRATION,
    FRAMEWORK_COMPARISON,
    REGRESSION,
    SWEEP,
)

__all__ = ["PIPELINES", "Finished", "Pipeline", "find_pipeline"]

PIPELINES = (SWEEP, REGRESSION, FRAMEWORK_COMPARISON, ASYNC_STUDY, CALIBRATION)


def find_pipeline(name: str) -> Pipeline:
    """Returns a pipeline by name, such as `sweep`."""
    for pipeline in PIPELINES:
        if pipeline.name == name:
            return pipeline
    known = [pipeline.name for pipeline in PIPELINES]
    raise UserError(f"unknown pipeline {name!r}; {did_you_mean(name, known)}")
