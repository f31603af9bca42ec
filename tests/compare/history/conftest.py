"""Runs of many days."""

from tests.paired_runs import (  # noqa: F401 - fixtures
    make_nightly,
    make_paired_run,
    make_separate_run,
)
