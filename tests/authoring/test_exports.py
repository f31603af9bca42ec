"""Imports of the guide's classes."""

from orbax_bench_core import authoring


def test_pytest_does_not_take_them_for_tests():
    assert not authoring.TestContext.__test__
    assert not authoring.TestResult.__test__
