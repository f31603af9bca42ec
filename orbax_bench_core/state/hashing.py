"""Integer hashes of element indices, the same on every backend and for every layout.

Only 32-bit additions, multiplications, shifts and exclusive ors are used: these are exact and
wrap alike everywhere. The multipliers are those of `lowbias32` and `triple32`, found by search for
low avalanche bias: https://github.com/skeeto/hash-prospector (public domain).
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from orbax_bench_core.state import layout

_GOLDEN: Final = np.uint32(0x9E3779B1)
_IMAGINARY: Final = np.uint32(0x6A09E667)


def linear_index(
    block_shape: Sequence[int],
    *,
    global_shape: Sequence[int],
    offsets: Sequence[jax.Array] | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Returns the row-major index, in the whole array, of each element of a rectangular block.

    From 2**32 elements on, 64-bit mode must be on (`layout.wide`).

    Args:
        block_shape: Elements of the block in each dimension.
        global_shape: Elements of the whole array, of as many dimensions.
        offsets: Where the block begins in each dimension, scalars; at zero without.

    Returns:
        The low and the high 32 bits, uint32, each broadcastable to `block_shape`.
    """
    is_wide = layout.needs_wide_index(global_shape)
    kind = np.uint64 if is_wide else np.uint32
    index = jnp.zeros(block_shape, kind)
    stride = 1
    for axis in reversed(range(len(block_shape))):
        along = lax.broadcasted_iota(kind, block_shape, axis)
        if offsets is not None:
            along = along + offsets[axis].astype(kind)
        index = index + along * kind(stride % 2 ** (64 if is_wide else 32))
        stride *= global_shape[axis]
    if not is_wide:
        return index, jnp.uint32(0)
    return index.astype(jnp.uint32), (index >> 32).astype(jnp.uint32)


def leaf_key(seed: int, leaf: str) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """Returns the two uint32 words that tell the values of one leaf from those of all others.

    They are the BLAKE2b hash of seed and name, in 64 bits, shape (2,).
    """
    digest = hashlib.blake2b(f"{seed}:{leaf}".encode(), digest_size=8).digest()
    return np.frombuffer(digest, dtype="<u4").astype(np.uint32)


def imaginary_key(key: jax.Array) -> jax.Array:
    """Returns the key for the imaginary parts of a leaf, whose real parts use `key`."""
    return key ^ _IMAGINARY


def random_word(low: jax.Array, high: jax.Array, key: jax.Array) -> jax.Array:
    """Returns 32 random bits per element: a function of its index and the key alone.

    Args:
        low: Low 32 bits of the indices, uint32, of any shape.
        high: High 32 bits, broadcastable to that shape.
        key: Words of the leaf (`leaf_key`), uint32, shape (2,).
    """
    h = low ^ key[0]
    h = (h ^ (h >> 17)) * np.uint32(0xED5AD4BB)
    h = (h ^ (h >> 11)) + key[1] + high * _GOLDEN
    h = h * np.uint32(0xAC4C1B51)
    h = (h ^ (h >> 15)) * np.uint32(0x31848BAB)
    return h ^ (h >> 14)


def next_word(word: jax.Array) -> jax.Array:
    """Returns further random bits, a bijection of the uint32 `word`."""
    h = (word + _GOLDEN) * np.uint32(0x7FEB352D)
    h = (h ^ (h >> 15)) * np.uint32(0x846CA68B)
    return h ^ (h >> 16)


def content_lanes(
    words: Sequence[jax.Array], low: jax.Array, high: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns two independent hashes of each element's bits and index, uint32.

    Summed modulo 2**32 over all elements, they do not depend on the order of summation, and hence
    not on the layout; the index inside makes them change when two elements change places.

    Args:
        words: The bits of the elements in words of up to 32 bits, each of the shape of the array.
        low: Low 32 bits of the indices, of the same shape.
        high: High 32 bits, broadcastable to that shape.
    """
    place = _mix_a(low ^ high * _GOLDEN)
    a, b = place, place * _GOLDEN + high
    for word in words:
        a = _mix_a(a ^ word)
        b = _mix_b(b ^ word)
    # Without the index, each lane would be a bijection of it: the sums of a constant array with
    # 2**32 elements would not depend on the constant.
    return a ^ low, b ^ low


def _mix_a(h: jax.Array) -> jax.Array:
    h = (h ^ (h >> 16)) * np.uint32(0x7FEB352D)
    h = (h ^ (h >> 15)) * np.uint32(0x846CA68B)
    return h ^ (h >> 16)


def _mix_b(h: jax.Array) -> jax.Array:
    h = (h ^ (h >> 17)) * np.uint32(0xED5AD4BB)
    h = (h ^ (h >> 11)) * np.uint32(0xAC4C1B51)
    return h ^ (h >> 15)
