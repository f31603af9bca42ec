"""Garbage between repeats: it is found, and what imports make is not searched."""

import gc
import weakref

import pytest

from orbax_bench_core.worker import runtime


class Node:
    """A node that refers to itself, so that only the collector frees it."""

    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def quick():
    """Sets the imports of all tests aside: looking at them takes longer than a unit test may."""
    gc.freeze()
    yield
    gc.unfreeze()


def test_imports_are_set_aside_and_nothing_is_searched_meanwhile():
    before = gc.get_freeze_count()
    with runtime.importing("a_module_that_nobody_has_imported"):
        assert not gc.isenabled()
        kept = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(kept)


@pytest.mark.parametrize("collect", [runtime.collect_garbage, runtime.collect_for_the_last_time])
def test_garbage_is_gone_before_a_repeat_and_at_the_end(collect):
    found = weakref.ref(Node())
    collect()
    assert found() is None
