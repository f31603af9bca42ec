"""Verdicts for CI: JUnit XML, and the summary page of a job of GitHub Actions."""

from orbax_bench_core.exports.ci.junit import junit_xml
from orbax_bench_core.exports.ci.step_summary import append_step_summary

__all__ = [
    "append_step_summary",
    "junit_xml",
]
