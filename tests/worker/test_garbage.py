"""Garbage between repeats: it is found, and what stays is not looked at each time."""

from __future__ import annotations

import gc
import weakref

import pytest

from orbax_bench_core.worker import garbage


class Node:
    """A node that refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def quick():
    """Sets the imports of all tests aside: looking at them takes longer than a unit test may."""
    gc.freeze()
    yield
    gc.unfreeze()


def test_imports_are_set_aside_and_nothing_is_searched_meanwhile():
    before = gc.get_freeze_count()
    with garbage.importing("a_module_that_nobody_has_imported"):
        assert not gc.isenabled()
        kept = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(kept)


def test_garbage_is_gone_at_the_end_and_nothing_else_is_searched():
    found = weakref.ref(Node())
    garbage.collect_for_the_last_time()
    assert found() is None
    assert not gc.get_objects(generation=2)


@pytest.mark.slow  # it looks at all objects of the process
def test_garbage_among_what_was_set_aside_is_found_in_the_end():
    node = Node()
    found = weakref.ref(node)
    kept = [[] for _ in range(2 * garbage._MANY)]
    garbage.collect_garbage()
    del node
    for _ in range(garbage._ALL_AT):
        kept.extend([] for _ in range(2 * garbage._MANY))
        garbage.collect_garbage()
    assert found() is None
