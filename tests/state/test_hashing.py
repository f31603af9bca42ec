from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orbax_bench_core.state import hashing

_random = jax.jit(hashing.random_word)
_lanes = jax.jit(hashing.content_lanes)


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


def test_random_words_depend_on_the_high_half_of_the_index() -> None:
    low, key = jnp.arange(1000, dtype=jnp.uint32), jnp.array(hashing.leaf_key(0, "w"))
    first = _random(low, jnp.uint32(0), key)
    second = _random(low, jnp.uint32(1), key)
    assert np.mean(np.asarray(first) == np.asarray(second)) < 0.01


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
