"""The numbers of the code's structure."""

from pathlib import Path

import pytest

from perf import structure

# The whole repository is parsed.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def numbers():
    return structure.numbers()


def test_no_module_is_reached_past_its_door(numbers):
    assert numbers["modules reached from outside their room"] == "0"


def test_no_compiled_pipeline_is_committed(numbers):
    assert numbers["committed pipeline packages, lines"] == "0"


def test_the_guide_keeps_each_number(numbers):
    guide = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    assert [what for what in numbers if f"| {what} |" not in guide] == []
