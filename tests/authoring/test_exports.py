"""Imports of the guide's classes."""

import pytest

from orbax_bench_core import authoring


@pytest.mark.parametrize(
    "name",
    [
        "BenchmarkOptions",
        "BenchmarksGenerator",
        "TestContext",
        "TestResult",
        "VerificationError",
        "benchmark_options",
    ],
)
def test_authoring_has_the_names_of_the_guide(name):
    assert getattr(authoring, name).__name__ == name


@pytest.mark.parametrize("name", ["TestContext", "TestResult"])
def test_pytest_does_not_take_them_for_tests(name):
    assert not getattr(authoring, name).__test__
