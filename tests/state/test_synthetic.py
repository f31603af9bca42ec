"""Synthetic trees and their values."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zstandard
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.config import BITS, ArraySpec, ShardingEntry
from orbax_bench_core.state import layout, synthetic
from orbax_bench_core.state.hashing import next_word
from orbax_bench_core.state.tree import StateError

# One of each kind; test_values.py goes through all.
KINDS = ["bool", "int2", "int64", "uint8", "float4_e2m1fn", "float16", "float64", "complex128"]
SHAPE = (16, 24)

# Standard deviation of a draw, as a fraction of its bound: 0.2887.
SIGMA = math.sqrt(4 * (2**32 - 1) / 12) * 2 / 2**synthetic.DRAW_BITS


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


SIZE = 1 << 19
REAL = [n for n in BITS if n not in layout.NUMPY_ONLY and not n.startswith("complex")]
FLOATS = [n for n in REAL if n.startswith(("float", "bfloat"))]

_words = jax.jit(lambda: next_word(jnp.arange(SIZE, dtype=jnp.uint32)))
_encode = jax.jit(synthetic.encode, static_argnums=0)


@functools.cache
def _made_values(name: str) -> np.ndarray[Any, Any]:
    return np.asarray(_encode(name, _words()))


def _zstd(array: np.ndarray[Any, Any], level: int) -> float:
    return array.nbytes / len(zstandard.compress(array.tobytes(), level))


@pytest.mark.parametrize("name", REAL)
def test_defect_12_values_are_finite_and_varied(name: str) -> None:
    made = _made_values(name).astype(np.float64)
    assert np.isfinite(made).all()
    few = {"bool": 2, "int2": 4, "uint2": 4, "float4_e2m1fn": 13}
    assert len(np.unique(made[: SIZE // 16])) >= few.get(name, 15)


@pytest.mark.parametrize(("name", "ratio"), [("bfloat16", 1.29), ("float32", 1.08)])
def test_values_compress_as_trained_weights_do(name: str, ratio: float) -> None:
    made = _made_values(name)
    assert [_zstd(made, 1), _zstd(made, 3)] == pytest.approx([ratio, ratio], rel=0.02)


@pytest.mark.parametrize("name", [n for n in FLOATS if n != "float8_e8m0fnu"])
def test_floats_have_the_moments_of_a_normal(name: str) -> None:
    scale = 2.0 ** synthetic.float_format(name).bound
    made = _made_values(name).astype(np.float64) / scale
    assert made.mean() == pytest.approx(0, abs=0.002)
    assert made.std() == pytest.approx(SIGMA, rel=0.03)
    assert np.abs(made).max() <= 1
    within_one_sigma = np.mean(np.abs(made) < SIGMA)
    coarse = jnp.finfo(name).nmant < 3
    assert within_one_sigma == pytest.approx(0.683, abs=0.1 if coarse else 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2fnuz"])
def test_draws_are_rounded_as_a_cast_rounds_them(name: str) -> None:
    words = _words()
    second = next_word(words)
    parts = [part for word in (words, second) for part in (word & 0xFFFF, word >> 16)]
    halves = np.sum([np.asarray(part).astype(np.int64) for part in parts], axis=0)
    draws = (halves * 2 - 262139) * 2.0 ** (
        synthetic.float_format(name).bound - synthetic.DRAW_BITS
    )
    # Through float32, which holds every draw exactly.
    cast = draws.astype(np.float32).astype(jnp.dtype(name))
    np.testing.assert_array_equal(_made_values(name).view(np.uint8), cast.view(np.uint8))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["int32", "int64", "float32", "float64"])
def test_low_bits_of_wide_types_are_fair(name: str) -> None:
    made = _made_values(name)
    bits = np.unpackbits(made.view(np.uint8).reshape(SIZE, -1)[:, :2], axis=1)
    assert bits.mean(axis=0) == pytest.approx(0.5, abs=0.005)
    assert len(np.unique(made)) > 0.9 * SIZE
