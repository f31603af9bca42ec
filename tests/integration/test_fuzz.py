"""Inputs that nobody meant: those that once failed, and a few hundred new ones."""

from pathlib import Path

import pytest

from tests.support.fuzz.doors import Given, Place, attempt
from tests.support.fuzz.trial import look_at

CORPUS = sorted((Path(__file__).parents[1] / "data" / "fuzz").glob("*.json"))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Valid files of every kind."""
    inside = tmp_path_factory.mktemp("fuzz") / "a" / "b" / "c"
    inside.mkdir(parents=True)
    return Place(inside / "place")


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_what_once_failed_is_refused_by_a_message(place, file):
    assert not attempt(Given.load(file.read_text()), place)


def test_new_inputs_leave_no_traceback_and_are_not_wrongly_accepted(place):
    found = look_at(place, seed=20261122, inputs=150)
    assert found.broken == {}
    assert found.accepted > 5
    assert sum(found.seen.values()) >= 150
