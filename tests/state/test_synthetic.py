from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.config import ArraySpec, ShardingEntry
from orbax_bench_core.state import synthetic
from orbax_bench_core.state.tree import StateError

# One of each kind; test_values.py goes through all.
KINDS = ["bool", "int2", "int64", "uint8", "float4_e2m1fn", "float16", "float64", "complex128"]
SHAPE = (16, 24)


def _array(
    dtype: str = "bfloat16",
    shape: tuple[int, ...] = SHAPE,
    sharding: tuple[ShardingEntry, ...] | None = None,
    mesh: Mesh | None = None,
    seed: int = 0,
    name: str = "w",
) -> jax.Array:
    spec = ArraySpec(dtype=dtype, shape=shape, sharding=sharding)
    made: jax.Array = synthetic.generate({name: spec}, seed=seed, mesh=mesh)[name]
    return made


def _bytes(array: jax.Array) -> bytes:
    return np.asarray(array).tobytes()


@pytest.mark.parametrize(
    ("sizes", "sharding"),
    [
        ({"x": 1}, ("x",)),
        ({"x": 2}, ("x", None)),
        ({"x": 4}, (None, "x")),
        ({"x": 8}, ("x",)),
        ({"x": 8}, None),
        ({"x": 2, "y": 4}, ("y", "x")),
        ({"x": 4, "y": 2}, (("y", "x"), None)),
    ],
)
def test_values_do_not_depend_on_the_layout(
    make_mesh: Callable[..., Mesh],
    sizes: dict[str, int],
    sharding: tuple[ShardingEntry, ...] | None,
) -> None:
    made = _array(sharding=sharding, mesh=make_mesh(**sizes))
    assert _bytes(made) == _bytes(_array())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", KINDS)
def test_every_kind_of_dtype_is_made_in_shards(make_mesh: Callable[..., Mesh], dtype: str) -> None:
    mesh = make_mesh(x=4, y=2)
    made = _array(dtype, sharding=("x", "y"), mesh=mesh)
    assert _bytes(made) == _bytes(_array(dtype))
    assert (made.dtype.name, made.shape) == (dtype, SHAPE)
    assert made.sharding == NamedSharding(mesh, PartitionSpec("x", "y"))
    assert np.isfinite(np.asarray(made).astype(np.complex128)).all()


# A change of these bytes makes stored digests and compression figures incomparable.
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("bfloat16", "a83c2f3dcabbd5bb"),
        ("float64", "1b5823e93241953fdb977b64f7ada53f026c707241c679bf07e4980063a37abf"),
        ("uint8", "aad77372"),
        ("float8_e4m3fn", "6b73dddd"),
    ],
)
def test_values_stay_as_they_were_published(dtype: str, expected: str) -> None:
    assert _bytes(_array(dtype, shape=(4,), seed=7)).hex() == expected


def test_the_seed_changes_every_array() -> None:
    assert _bytes(_array(seed=0)) != _bytes(_array(seed=1))


def test_the_path_changes_the_values() -> None:
    spec = ArraySpec(dtype="uint32", shape=(1000,))
    tree = synthetic.generate({"a": {"w": spec}, "b": {"w": spec}}, seed=0, mesh=None)
    assert np.mean(np.asarray(tree["a"]["w"]) == np.asarray(tree["b"]["w"])) < 0.01


def test_the_tree_has_the_form_of_the_spec() -> None:
    spec: dict[str, Any] = {
        "step": "int",
        "name": "str",
        "params": {"w": ArraySpec(dtype="int8", shape=(2,)), "empty": {}},
    }
    tree = synthetic.generate(spec, seed=0, mesh=None)
    assert tree == {
        "step": 1234,
        "name": "synthetic",
        "params": {"w": tree["params"]["w"], "empty": {}},
    }
    assert isinstance(tree["params"]["w"], jax.Array)


@pytest.mark.parametrize("shape", [(), (0,), (8, 0), (1, 1, 1)])
def test_scalars_and_empty_arrays_are_made(
    make_mesh: Callable[..., Mesh], shape: tuple[int, ...]
) -> None:
    assert _array("float32", shape=shape, mesh=make_mesh(x=8)).shape == shape


def test_a_spec_that_does_not_fit_names_the_leaf(mesh8: Mesh) -> None:
    spec = {"params": {"w": ArraySpec(dtype="int8", shape=(10,), sharding=("x",))}}
    with pytest.raises(StateError, match=r"leaf 'params\.w': dimension 0 has 10 elements"):
        synthetic.generate(spec, seed=0, mesh=mesh8)


def test_a_64_bit_dtype_is_not_narrowed_silently() -> None:
    with jax.enable_x64(False), pytest.raises(StateError, match="JAX_ENABLE_X64"):
        _array("float64")


def test_32_bit_values_do_not_depend_on_64_bit_mode() -> None:
    expected = _bytes(_array("float32", shape=(5, 7)))
    with jax.enable_x64(False):
        assert _bytes(_array("float32", shape=(5, 7))) == expected


def test_a_leaf_of_the_host_is_a_numpy_array_with_the_same_values() -> None:
    spec = ArraySpec(dtype="bfloat16", shape=SHAPE, host=True)
    made = synthetic.generate({"w": spec}, seed=0, mesh=None)["w"]
    assert isinstance(made, np.ndarray)
    assert made.flags.writeable
    assert _bytes(made) == _bytes(_array())
