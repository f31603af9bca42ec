"""Runs to capture, and a registry to capture them in."""

import pytest

from orbax_bench_core.baselines.store import Registry
from tests.support.paired_runs import make_paired_run, make_separate_run  # noqa: F401 - fixtures


@pytest.fixture
def registry(tmp_path):
    """An empty registry."""
    return Registry(str(tmp_path / "registry"))
