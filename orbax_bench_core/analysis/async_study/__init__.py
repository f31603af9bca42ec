"""Async study: blocking saves beside saves in the background, by the size of the checkpoint."""

from orbax_bench_core.analysis.async_study.model import AsyncStudy as AsyncStudy
from orbax_bench_core.analysis.async_study.parameters import ParameterCounter as ParameterCounter
from orbax_bench_core.analysis.async_study.study import async_study as async_study
from orbax_bench_core.analysis.async_study.study import check_points as check_points
from orbax_bench_core.analysis.async_study.view import headline as headline
from orbax_bench_core.analysis.async_study.view import study_document as study_document
