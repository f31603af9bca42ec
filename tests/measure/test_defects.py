"""Defects of the existing framework that a benchmark could bring back, whatever measures it.

The other defects about measuring are named in the tests of what they concern.
"""

import jax
import jax.numpy as jnp
import pytest
from etils import epath
from orbax.checkpoint import v1 as ocp

from orbax_bench_core.authoring import TestContext
from orbax_bench_core.benchmarks.save_restore import SaveRestore, SaveRestoreOptions
from orbax_bench_core.measure import collectors


@jax.jit
def compute(seed):
    """Takes long enough that nothing else has been done when it is asked for."""
    return jax.lax.fori_loop(0, 60, lambda _, x: x @ x / 1000, jnp.full((700, 700), seed))


@pytest.fixture
def dispatch():
    """Gives an array whose values are still being computed."""
    compute(jnp.float32(1)).block_until_ready()
    return lambda: {"a": compute(jnp.float32(2))}


@pytest.fixture
def at_the_clock(add_scripted, monkeypatch):
    """Calls functions just before the clock of every default block starts, and after it stops."""

    def watch(**calls):
        add_scripted("watching", **calls)
        monkeypatch.setattr(collectors, "DEFAULT_KEYS", ("watching", *collectors.DEFAULT_KEYS))

    return watch


def save_and_load(tree, folder):
    SaveRestore().test_fn(
        TestContext(pytree=tree, path=epath.Path(folder), options=SaveRestoreOptions())
    )


@pytest.mark.slow
def test_defect_5_arrays_are_ready_before_the_clock_of_a_save_starts(
    dispatch, at_the_clock, tmp_path
):
    tree = dispatch()
    ready = []
    at_the_clock(on_start=lambda: ready.append(tree["a"].is_ready()))
    assert not tree["a"].is_ready()

    save_and_load(tree, tmp_path)

    assert ready[0]


@pytest.mark.slow
def test_defect_6_arrays_are_ready_before_the_clock_of_a_load_stops(
    dispatch, at_the_clock, tmp_path, monkeypatch
):
    loaded = []

    def load(*_):
        loaded.append(dispatch())
        assert not loaded[0]["a"].is_ready()
        return loaded[0]

    ready = []
    at_the_clock(on_stop=lambda: ready.extend(tree["a"].is_ready() for tree in loaded))
    tree = dispatch()
    monkeypatch.setattr(ocp, "load", load)

    save_and_load(tree, tmp_path)

    assert ready == [True]
