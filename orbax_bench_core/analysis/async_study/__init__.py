"""An async study for people: in the terminal, as Markdown and as a page with figures."""

from orbax_bench_core.analysis.async_study.model import AsyncStudy
from orbax_bench_core.analysis.async_study.parameters import ParameterCounter
from orbax_bench_core.analysis.async_study.study import async_study, check_points
from orbax_bench_core.analysis.async_study.view import print_study, study_html, study_markdown

__all__ = [
    "AsyncStudy",
    "ParameterCounter",
    "async_study",
    "check_points",
    "print_study",
    "study_html",
    "study_markdown",
]
