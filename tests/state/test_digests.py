"""Digests and the hashes that they add up: equal for equal content, however laid out."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.config import BITS
from orbax_bench_core.state import hashing, layout
from orbax_bench_core.state.digests import combine, compare, digest, partial_digest
from orbax_bench_core.state.tree import StateError

ALL = [name for name in BITS if name not in layout.NUMPY_ONLY]


def _one(leaf: Any) -> str:
    return digest({"w": leaf})["w"]


def _made() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "spec"),
    [
        ({"x": 1}, PartitionSpec("x")),
        ({"x": 2}, PartitionSpec(None, "x")),
        ({"x": 4}, PartitionSpec("x")),
        ({"x": 8}, PartitionSpec("x")),
        ({"x": 8}, PartitionSpec()),
        ({"x": 2, "y": 4}, PartitionSpec("x", "y")),
        ({"x": 2, "y": 4}, PartitionSpec("y")),
        ({"x": 4, "y": 2}, PartitionSpec(("y", "x"))),
    ],
)
def test_defect_24_the_layout_does_not_matter(
    make_mesh: Callable[..., Mesh], sizes: dict[str, int], spec: PartitionSpec
) -> None:
    values = _made()
    array = jax.device_put(values, NamedSharding(make_mesh(**sizes), spec))
    assert _one(array) == _one(values)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ALL)
def test_every_dtype_has_a_digest_and_sees_one_bit(dtype: str) -> None:
    values = np.random.default_rng(0).integers(0, 2, (16, 8)).astype(jnp.dtype(dtype))
    array = jnp.asarray(values)
    flipped = values.copy()
    flipped.view(np.uint8).reshape(-1)[5 * values.dtype.itemsize] ^= 1
    assert _one(array) == _one(values) != _one(flipped)


def test_the_digest_stays_as_it_was_published() -> None:
    assert _one(np.arange(6, dtype=np.int32).reshape(2, 3)) == "6b3c9b3a5a66cd0c135e3c9efdbfb513"


def test_swapped_elements_are_seen() -> None:
    values = _made()
    swapped = values.copy()
    swapped[0, 0], swapped[3, 5] = values[3, 5], values[0, 0]
    assert _one(swapped) != _one(values)


def test_the_shape_is_seen() -> None:
    assert _one(_made().reshape(8, 16)) != _one(_made())


def test_the_dtype_is_seen_when_the_bits_are_equal() -> None:
    assert _one(_made().view(np.uint32)) != _one(_made())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [(0x80000000, 0x00000000), (0x7FC00000, 0x7FC00001), (0x7FC00000, 0xFFC00000)],
)
def test_floats_are_compared_bit_by_bit(mesh8: Mesh, first: int, second: int) -> None:
    sharding = NamedSharding(mesh8, PartitionSpec("x"))
    arrays = [np.full(8, bits, np.uint32).view(np.float32) for bits in (first, second)]
    digests = {_one(jax.device_put(array, sharding)) for array in arrays}
    assert len(digests) == 2
    assert digests == {_one(array) for array in arrays}


def test_the_parts_of_complex_numbers_are_not_interchangeable() -> None:
    assert _one(jnp.array([1 + 2j])) != _one(jnp.array([2 + 1j]))


def test_leaves_of_python_are_told_apart() -> None:
    leaves = [1, 2, True, 1.0, "1", b"1", 1j, np.int64(1), np.float64(1)]
    assert len({_one(leaf) for leaf in leaves}) == len(leaves)


def test_random_keys_are_told_from_their_words() -> None:
    key = jax.random.key(3)
    assert _one(key) == _one(jax.random.key(3)) != _one(jax.random.key_data(key))


def test_other_leaves_are_refused() -> None:
    with pytest.raises(StateError, match=r"leaf 'a\.0' is object"):
        digest({"a": [object()]})


def test_dtypes_that_only_numpy_holds_are_refused_on_devices() -> None:
    with pytest.raises(StateError, match="leaf 'w': JAX cannot compute with uint1"):
        _one(jax.device_put(np.zeros(4, jnp.dtype("uint1"))))


def test_64_bit_arrays_keep_their_digest_outside_64_bit_mode() -> None:
    array = jnp.asarray(_made().astype(np.float64))
    expected = _one(array)
    with jax.enable_x64(False):
        assert _one(array) == expected


def test_parts_of_several_processes_add_up() -> None:
    whole = partial_digest({"w": _made(), "step": 3})
    first, second = whole["w"].lanes
    parts = [
        {
            "w": type(whole["w"])(whole["w"].kind, lanes, whole=False),
            "step": whole["step"],
        }
        for lanes in [(7, 2**32 - 1), ((first - 7) % 2**32, (second + 1) % 2**32)]
    ]
    assert combine(parts) == combine([whole])


def test_parts_of_different_trees_are_refused() -> None:
    with pytest.raises(StateError, match="the processes hold different trees"):
        combine([partial_digest({"w": _made()}), partial_digest({"w": _made().astype(np.int32)})])


def test_differences_say_what_is_wrong_with_which_leaf() -> None:
    assert compare({"a": "1", "b": "2"}, {"b": "3", "c": "4"}) == [
        "a: missing, expected digest 1",
        "b: different, expected 2, got 3",
        "c: unexpected, has digest 4",
    ]


_lanes = jax.jit(hashing.content_lanes)


def test_arrays_in_host_memory_have_the_same_digest(mesh8: Mesh) -> None:
    values = np.arange(64, dtype=np.uint32)
    sharding = NamedSharding(mesh8, PartitionSpec("x"), memory_kind="pinned_host")
    assert _one(jax.device_put(values, sharding)) == _one(values)


@pytest.mark.slow
@pytest.mark.parametrize("change", [lambda a: a.astype(">u4"), np.asfortranarray])
def test_the_byte_order_and_layout_of_numpy_do_not_matter(
    change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]],
) -> None:
    values = np.arange(60, dtype=np.uint32).reshape(3, 20)
    assert _one(change(values)) == _one(values)


def _indices(block: tuple[int, ...], shape: tuple[int, ...], offsets: list[int]) -> list[int]:
    with jax.enable_x64(True):
        low, high = hashing.linear_index(
            block, global_shape=shape, offsets=[jnp.uint64(o) for o in offsets]
        )
    lows = np.asarray(low).ravel().tolist()
    highs = np.broadcast_to(high, block).ravel().tolist()
    return [h * 2**32 + lo for h, lo in zip(highs, lows, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "offsets"),
    [((2**20, 2**20), [2**19, 5]), ((2**40,), [2**35 + 1]), ((1, 2**32), [0, 7])],
)
def test_index_is_exact_beyond_32_bits(shape: tuple[int, ...], offsets: list[int]) -> None:
    block = (1,) * len(shape)
    expected = int(sum(o * np.prod(shape[d + 1 :], dtype=object) for d, o in enumerate(offsets)))
    assert _indices(block, shape, offsets) == [expected]


@pytest.mark.slow
@pytest.mark.parametrize("bit", range(0, 32, 5))
def test_one_bit_of_the_content_flips_half_of_each_lane(bit: int) -> None:
    index = jnp.arange(4096, dtype=jnp.uint32)
    word = index * 7
    lanes = _lanes([word], index, jnp.uint32(0))
    flipped = _lanes([word ^ np.uint32(1 << bit)], index, jnp.uint32(0))
    for before, after in zip(lanes, flipped, strict=True):
        changed = np.bitwise_count(np.asarray(before ^ after)).mean()
        assert changed == pytest.approx(16, abs=0.5)
