"""Repeats in turn with the bare loop: the program that measures them prints what it found."""

import pytest

from perf import repeats


@pytest.mark.nightly  # it starts JAX, and saves and loads four times
def test_the_program_prints_what_each_kind_of_repeat_takes():
    found = repeats.in_turn(repeats=1, turns=1)
    assert set(found) == {repeats.EMPTY, repeats.SAVED, repeats.BARE}
    assert 0 < found[repeats.EMPTY] < found[repeats.SAVED]
    assert found[repeats.BARE] > 0
