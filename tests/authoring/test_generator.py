"""The class that holds the measured code."""

import pytest

from orbax_bench_core.authoring import BenchmarksGenerator


def test_a_benchmark_without_test_fn_cannot_be_made():
    with pytest.raises(TypeError, match="test_fn"):
        type("Empty", (BenchmarksGenerator,), {})()
