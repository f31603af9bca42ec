"""Calling what a component does in this process, with artifacts that lie in a folder."""

import pytest

pytest.importorskip("kfp")

from orbax_bench_components import testing


@pytest.fixture
def call(tmp_path):
    """Calls a component; returns its output artifacts by name, and what it returned as `Output`."""

    def run(component, **inputs):
        return testing.call(component, tmp_path / "artifacts", **inputs)

    return run
