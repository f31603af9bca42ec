"""Account of a dense layer: parameters, even share, and messages for inputs that are wrong."""

import doctest
import functools
import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.plan import orbax_save_count

DOCS = Path(__file__).parents[2] / "docs"

needs_flax = pytest.mark.usefixtures("flax")


@pytest.fixture
def flax():
    return pytest.importorskip("flax.nnx")


@needs_flax
@pytest.mark.parametrize(
    ("seed", "shape", "features", "num_shards", "expected"),
    [
        (0.0, (4, 8), 16.0, 4.0, [144.0, 36.0]),
        (1.0, (2, 64), 128.0, 8.0, [8320.0, 1040.0]),
        (7.0, (1, 3), 5.0, 2.0, [20.0, 10.0]),
        (3.0, (5, 100), 10.0, 7.0, [1010.0, 144.2857208251953]),
        (42.0, (8, 512), 512.0, 1.0, [262656.0, 262656.0]),
        (0.0, (2, 4096), 4096.0, 3.0, [16781312.0, 5593770.5]),
        (0.9, (4, 8), 4.9, 2.9, [36.0, 18.0]),  # truncated, not rounded
        (0, (1, 16384), 16384, 1, [268451841.0, 268451841.0]),  # beyond the integers of float32
        (0, (1, 10**6), 10**6, 1000, [1.000001e12, 1.000001e9]),  # 4 TB, of which none is made
    ],
)
def test_a_layer_is_counted(seed, shape, features, num_shards, expected):
    count = orbax_save_count(seed, jax.ShapeDtypeStruct(shape, "float32"), features, num_shards)
    assert isinstance(count, jax.Array)
    assert count.shape == (2,)
    assert count.dtype == jnp.float32
    np.testing.assert_allclose(count, expected, rtol=1e-6)


@needs_flax
def test_neither_seed_nor_rows_nor_values_change_the_counts():
    expected = [144.0, 36.0]
    for seed in (-1.5, 0.3, 7, 2**40, np.float32(3), jnp.array(2.0)):
        assert orbax_save_count(seed, np.ones((4, 8)), 16.0, 4.0).tolist() == expected
    for x in (np.zeros((1, 8)), np.full((9, 8), np.nan), jnp.ones((0, 8)), jnp.ones((2, 3, 8))):
        assert orbax_save_count(0.0, x, 16.0, 4.0).tolist() == expected
    assert orbax_save_count(0.0, np.ones(8), 16.0, 4.0).tolist() == expected


@pytest.mark.slow
@needs_flax
@pytest.mark.parametrize(("width", "features", "shards"), [(8, 16, 4), (3, 5, 2)])
def test_what_orbax_saves_has_as_many_elements(flax, tmp_path, width, features, shards):
    from orbax.checkpoint import v1 as ocp

    model = flax.Linear(width, features, rngs=flax.Rngs(0))
    ocp.save(tmp_path / "saved", flax.to_pure_dict(flax.state(model)))
    saved = jax.tree.leaves(ocp.metadata(tmp_path / "saved").metadata)
    total, per_shard = orbax_save_count(0, np.ones((1, width)), features, shards)
    assert sum(np.prod(leaf.shape) for leaf in saved) == total
    assert total / shards == per_shard


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"features": 0.9}, "features: must be at least 1 after truncation to an integer, got 0.9"),
        ({"features": -3}, "features: must be at least 1 after truncation to an integer, got -3"),
        ({"features": 1e300}, f"features: must be less than {2**63} after truncation"),
        ({"num_shards": 0.5}, "num_shards: must be at least 1 after truncation to an integer, "),
        ({"num_shards": 0}, "num_shards: must be at least 1 after truncation to an integer, got 0"),
        ({"num_shards": float("nan")}, "num_shards: must be a finite number, got nan"),
        ({"features": float("inf")}, "features: must be a finite number, got inf"),
        ({"seed": float("-inf")}, "seed: must be a finite number, got -inf"),
        ({"seed": None}, "seed: must be a finite number, got None"),
        ({"seed": "one"}, "seed: must be a finite number, got 'one'"),
        ({"seed": 2**63}, f"seed: must be less than {2**63} after truncation"),
        ({"x": np.float32(1)}, "x: must be an array of shape (rows, in_dim), got shape ()"),
        ({"x": [[1.0, 2.0]]}, "x: must be an array of shape (rows, in_dim), got list"),
        ({"x": np.ones((4, 0))}, "x: its last dimension is empty: got shape (4, 0)"),
    ],
)
def test_a_wrong_input_is_named_with_what_was_given(wrong, message):
    right = {"seed": 0.0, "x": np.ones((4, 8)), "features": 16.0, "num_shards": 4.0}
    with pytest.raises(UserError, match=re.escape(message)) as raised:
        orbax_save_count(**{**right, **wrong})
    assert len(raised.value.problems) == 1


def test_all_that_is_wrong_is_in_one_error():
    with pytest.raises(UserError) as raised:
        orbax_save_count(float("nan"), np.float32(1), 0.0, 0.0)
    assert [problem.key for problem in raised.value.problems] == [
        "seed",
        "x",
        "features",
        "num_shards",
    ]


@needs_flax
def test_static_counts_work_under_jit():
    x = jnp.ones((4, 8))
    bound = jax.jit(functools.partial(orbax_save_count, features=16.0, num_shards=4.0, seed=0.0))
    assert bound(x=x).tolist() == [144.0, 36.0]
    static = jax.jit(orbax_save_count, static_argnames=("seed", "features", "num_shards"))
    assert static(0.0, x, 16.0, 4.0).tolist() == [144.0, 36.0]
    assert static(0.0, x, 16.0, 4.0).dtype == jnp.float32


def test_traced_counts_are_refused():
    with pytest.raises(UserError, match="make it static") as no:
        jax.jit(orbax_save_count)(0.0, jnp.ones((4, 8)), 16.0, 4.0)
    assert [problem.key for problem in no.value.problems] == ["seed", "features", "num_shards"]


@pytest.mark.parametrize("missing", ["flax", "flax.nnx"])
def test_without_flax_the_extra_is_named(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UserError, match=r"pip install 'orbax-bench\[flax\]'"):
        orbax_save_count(0.0, np.ones((4, 8)), 16.0, 4.0)


@needs_flax
def test_the_examples_run():
    (found,) = (
        example
        for example in doctest.DocTestFinder().find(orbax_save_count, "save_count")
        if example.examples
    )
    assert doctest.DocTestRunner().run(found) == doctest.TestResults(failed=0, attempted=4)
    page = doctest.testfile(str(DOCS / "planning.md"), module_relative=False)
    assert page.attempted
    assert not page.failed
