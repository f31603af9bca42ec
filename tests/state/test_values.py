from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zstandard

from orbax_bench_core.config import BITS
from orbax_bench_core.state import layout, values
from orbax_bench_core.state.hashing import next_word

SIZE = 1 << 19
REAL = [n for n in BITS if n not in layout.NUMPY_ONLY and not n.startswith("complex")]
FLOATS = [n for n in REAL if n.startswith(("float", "bfloat"))]

_words = jax.jit(lambda: next_word(jnp.arange(SIZE, dtype=jnp.uint32)))
_encode = jax.jit(values.encode, static_argnums=0)


@functools.cache
def _values(name: str) -> np.ndarray[Any, Any]:
    return np.asarray(_encode(name, _words()))


def _zstd(array: np.ndarray[Any, Any], level: int) -> float:
    return array.nbytes / len(zstandard.compress(array.tobytes(), level))


@pytest.mark.parametrize("name", REAL)
def test_defect_12_values_are_finite_and_varied(name: str) -> None:
    made = _values(name).astype(np.float64)
    assert np.isfinite(made).all()
    few = {"bool": 2, "int2": 4, "uint2": 4, "float4_e2m1fn": 13}
    assert len(np.unique(made[: SIZE // 16])) >= few.get(name, 15)


@pytest.mark.parametrize(("name", "ratio"), [("bfloat16", 1.29), ("float32", 1.08)])
def test_values_compress_as_trained_weights_do(name: str, ratio: float) -> None:
    made = _values(name)
    assert [_zstd(made, 1), _zstd(made, 3)] == pytest.approx([ratio, ratio], rel=0.02)


@pytest.mark.parametrize("name", [n for n in FLOATS if n != "float8_e8m0fnu"])
def test_floats_have_the_moments_of_a_normal(name: str) -> None:
    scale = 2.0 ** values.float_format(name).bound
    made = _values(name).astype(np.float64) / scale
    assert made.mean() == pytest.approx(0, abs=0.002)
    assert made.std() == pytest.approx(values.DRAW_SIGMA, rel=0.03)
    assert np.abs(made).max() <= 1
    within_one_sigma = np.mean(np.abs(made) < values.DRAW_SIGMA)
    coarse = jnp.finfo(name).nmant < 3
    assert within_one_sigma == pytest.approx(0.683, abs=0.1 if coarse else 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2fnuz"])
def test_draws_are_rounded_as_a_cast_rounds_them(name: str) -> None:
    words = _words()
    second = next_word(words)
    parts = [part for word in (words, second) for part in (word & 0xFFFF, word >> 16)]
    halves = np.sum([np.asarray(part).astype(np.int64) for part in parts], axis=0)
    draws = (halves * 2 - 262139) * 2.0 ** (values.float_format(name).bound - values.DRAW_BITS)
    # Through float32, which holds every draw exactly.
    cast = draws.astype(np.float32).astype(jnp.dtype(name))
    np.testing.assert_array_equal(_values(name).view(np.uint8), cast.view(np.uint8))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["int32", "int64", "float32", "float64"])
def test_low_bits_of_wide_types_are_fair(name: str) -> None:
    made = _values(name)
    bits = np.unpackbits(made.view(np.uint8).reshape(SIZE, -1)[:, :2], axis=1)
    assert bits.mean(axis=0) == pytest.approx(0.5, abs=0.005)
    assert len(np.unique(made)) > 0.9 * SIZE
