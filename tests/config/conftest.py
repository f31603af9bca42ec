"""Asking what is wrong with a suite file."""

import pytest

from orbax_bench_core.config.base import SuiteError
from orbax_bench_core.config.load import parse_suite


@pytest.fixture(scope="session")
def problems():
    """Returns all that is wrong with a text that stands in `suite.yaml`."""

    def find(text):
        with pytest.raises(SuiteError) as caught:
            parse_suite(text, "suite.yaml")
        return caught.value.problems

    return find


@pytest.fixture(scope="session")
def only_problem(problems):
    """Returns the one thing that is wrong with lines that follow a valid three-line suite."""

    def find(extra):
        found = problems(f"suite_name: s\nbenchmarks:\n- {{generator: g, options: {{}}}}\n{extra}")
        assert len(found) == 1, found
        return found[0]

    return find


@pytest.fixture(scope="session")
def accept():
    """Returns the suite that lines after a valid three-line suite make."""

    def load(extra):
        text = f"suite_name: s\nbenchmarks:\n- {{generator: g, options: {{}}}}\n{extra}"
        return parse_suite(text, "suite.yaml").suite

    return load
