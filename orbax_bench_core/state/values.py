"""Array values from random bits: compressible like trained weights, in any dtype.

A draw is the sum of four 16-bit uniforms (the Irwin-Hall distribution with n = 4), an integer that
is normal to within 2 % of its standard deviation and that every backend computes alike. The dtype's
bit pattern is then put together with integer operations: no rounding mode, flush-to-zero or
transcendental function of a backend can change a bit of it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from orbax_bench_core.state.hashing import next_word

DRAW_BITS: Final = 18
"""Draws lie in [-2**18, 2**18)."""

DRAW_SIGMA: Final = math.sqrt(4 * (2**32 - 1) / 12) * 2 / 2**DRAW_BITS
"""Standard deviation of a draw, as a fraction of its bound: 0.2887."""

_WEIGHT_BOUND: Final = -4
"""Floats of enough range are bounded by 2**-4, so their standard deviation is 0.018."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatFormat:
    """The bits of a floating-point number that follow the normal distribution.

    Attributes:
        bits: Bits that are computed from the draw: sign, exponent and leading mantissa bits.
        mantissa: Mantissa bits among them.
        min_exponent: Exponent of the smallest normal number.
        bias: Exponent bias.
        bound: Values lie in [-2**bound, 2**bound].
        signed: Whether there is a sign bit, and with it a zero.
        negative_zero: Whether zero has a sign; formats without use that pattern for NaN.
        random_bits: Bits below them, which are uniform.
    """

    bits: int
    mantissa: int
    min_exponent: int
    bias: int
    bound: int
    signed: bool
    negative_zero: bool
    random_bits: int


def float_format(name: str) -> FloatFormat:
    """Describes the values of a floating-point dtype.

    Where the exponent's range allows, values have the scale of trained weights; narrow formats use
    their whole range, as scaled quantisation does.
    """
    info = jnp.finfo(name)
    random_bits = max(0, info.bits - 16)
    signed = name != "float8_e8m0fnu"
    largest = math.floor(math.log2(float(info.max)))
    return FloatFormat(
        bits=info.bits - random_bits,
        # float64 keeps 11 exponent bits, so of its leading 16 bits four are mantissa.
        mantissa=info.nmant - random_bits,
        min_exponent=int(info.minexp),
        bias=int(1 - info.minexp if signed else -info.minexp),
        bound=min(largest, _WEIGHT_BOUND) if info.minexp <= -14 else largest,
        signed=signed,
        negative_zero=not name.endswith("fnuz"),
        random_bits=random_bits,
    )


def encode(name: str, word: jax.Array) -> jax.Array:
    """Makes one value of a real dtype from each random word.

    Args:
        name: Canonical name of the dtype; complex numbers are two calls.
        word: 32 random bits per element, uint32, of any shape.

    Returns:
        An array of the shape of `word`: normally distributed floats, integers that are normal over
        their range with a standard deviation of 0.29 times its half, or fair booleans.
    """
    if name == "bool":
        return (word >> 31).astype(jnp.bool_)
    second = next_word(word)
    halves = (word & 0xFFFF) + (word >> 16) + (second & 0xFFFF) + (second >> 16)
    # Odd, so that no draw is zero, which has no exponent.
    draw = halves.astype(jnp.int32) * 2 - 262139
    third = next_word(second)
    if jnp.issubdtype(jnp.dtype(name), jnp.integer):
        return _integer(name, draw, third)
    return _floating(name, draw, third)


def _integer(name: str, draw: jax.Array, word: jax.Array) -> jax.Array:
    dtype = jnp.dtype(name)
    bits: int = jnp.iinfo(dtype).bits
    unsigned = jnp.uint64 if bits == 64 else jnp.uint32
    # A draw's last bit is always set.
    offset = ((draw >> 1) + 2 ** (DRAW_BITS - 1)).astype(unsigned)
    spare = bits - DRAW_BITS
    code: jax.Array = offset >> max(-spare, 0)
    if spare > 0:
        code = (code << spare) | _random(word, spare, unsigned)
    if jnp.issubdtype(dtype, jnp.unsignedinteger):
        return code.astype(dtype)
    signed = jnp.int64 if bits == 64 else jnp.int32
    centred = code - np.array(2 ** (bits - 1), unsigned)
    return lax.bitcast_convert_type(centred, signed).astype(dtype)


def _floating(name: str, draw: jax.Array, word: jax.Array) -> jax.Array:
    form = float_format(name)
    code = _float_code(draw, form)
    width = form.bits + form.random_bits
    unsigned = jnp.dtype(f"uint{width}")
    if form.random_bits:
        random = _random(word, form.random_bits, unsigned)
        code = (code.astype(unsigned) << form.random_bits) | random
    return lax.bitcast_convert_type(code.astype(unsigned), jnp.dtype(name))


def _float_code(draw: jax.Array, form: FloatFormat) -> jax.Array:
    """Returns the bits of draw * 2**(bound - 18) in the format, as uint32.

    It is rounded to nearest, or towards zero when random bits follow.
    """
    # Draws have fewer bits than a float32 mantissa, so this conversion is exact.
    bits = lax.bitcast_convert_type(draw.astype(jnp.float32), jnp.uint32)
    rebias = (form.bias + form.bound - DRAW_BITS - 127) * 2**form.mantissa
    magnitude, drop = bits & 0x7FFFFFFF, 23 - form.mantissa
    code = magnitude >> drop if form.random_bits else _round(magnitude, drop)
    code = code + np.uint32(rebias % 2**32)
    if form.signed:
        code = _subnormal(code, jnp.abs(draw).astype(jnp.uint32), form)
        sign = bits >> 31
        if not form.negative_zero:
            sign = jnp.where(code == 0, jnp.uint32(0), sign)
        code = code | (sign << (form.bits - 1))
    return code


def _subnormal(code: jax.Array, magnitude: jax.Array, form: FloatFormat) -> jax.Array:
    smallest_normal = DRAW_BITS - form.bound + form.min_exponent
    if smallest_normal <= 0:
        return code
    shift = smallest_normal - form.mantissa
    fixed_point = _round(magnitude, shift) if shift > 0 else magnitude << -shift
    return jnp.where(magnitude < 2**smallest_normal, fixed_point, code)


def _round(value: jax.Array, shift: int) -> jax.Array:
    """Divides a uint32 by 2**shift, rounding to nearest, ties to even; shift is at least 1."""
    return (value + np.uint32(2 ** (shift - 1) - 1) + ((value >> shift) & 1)) >> shift


def _random(word: jax.Array, bits: int, dtype: jax.typing.DTypeLike) -> jax.Array:
    if bits <= 32:
        return (word >> (32 - bits)).astype(dtype)
    high = next_word(word).astype(dtype) >> (64 - bits)
    return (high << 32) | word.astype(dtype)
