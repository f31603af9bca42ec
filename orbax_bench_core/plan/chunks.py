"""Chunk shapes of an array on storage, by the arithmetic of Orbax."""

from __future__ import annotations

import functools
import math

from orbax_bench_core.plan.options import StorageOptions


def chunk_shape(
    shape: tuple[int, ...], write_shape: tuple[int, ...], itemsize: int, options: StorageOptions
) -> tuple[int, ...]:
    """Returns the shape of the chunks that Orbax cuts an array into.

    The rule is that of `subchunking.choose_chunk_shape` and
    `tensorstore_utils.calculate_chunk_byte_size` in orbax-checkpoint 0.12.8, without `shard_axes`:
    the largest dimension that is cut already is cut further by its divisors, until a chunk is
    small enough; only then dimensions that are whole.

    Args:
        shape: Global shape, in elements.
        write_shape: What one process writes at a time.
        itemsize: Bytes of an element.
        options: Of these, the sizes of chunks and data files.
    """
    write_shape = tuple(max(1, size) for size in write_shape)
    limit = options.chunk_byte_size
    if options.use_ocdbt and options.target:
        if limit is not None:
            limit = min(limit, options.target)
        elif math.prod(write_shape) * itemsize > options.target:
            limit = options.target
    if limit is None:
        return write_shape
    return _cut(shape, write_shape, max(1, limit // itemsize))


@functools.lru_cache(maxsize=4096)
def _cut(
    shape: tuple[int, ...], write_shape: tuple[int, ...], most_elements: int
) -> tuple[int, ...]:
    factors = [_divisors(size) for size in write_shape]
    is_cut = [whole != part for whole, part in zip(shape, write_shape, strict=True)]
    while math.prod(found[-1] for found in factors) > most_elements:
        largest = max(
            (found[-1] for found, cut in zip(factors, is_cut, strict=True) if cut), default=1
        )
        if largest == 1:
            is_cut = [True] * len(factors)
            continue
        chosen = next(
            index
            for index, (found, cut) in enumerate(zip(factors, is_cut, strict=True))
            if cut and found[-1] == largest
        )
        factors[chosen].pop()
    return tuple(found[-1] for found in factors)


def _divisors(size: int) -> list[int]:
    low = [part for part in range(1, math.isqrt(size) + 1) if size % part == 0]
    return sorted({*low, *(size // part for part in low)})
