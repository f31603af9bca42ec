"""Async study: blocking saves beside saves in the background, by the size of the checkpoint."""

from orbax_bench_core.analysis.async_study.model import AsyncStudy
from orbax_bench_core.analysis.async_study.study import ParameterCounter, async_study, check_points
from orbax_bench_core.analysis.async_study.view import headline, study_document

__all__ = [
    "AsyncStudy",
    "ParameterCounter",
    "async_study",
    "check_points",
    "headline",
    "study_document",
]
