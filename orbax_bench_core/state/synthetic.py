"""Synthetic state: a tree of ready arrays from a spec, compressible like trained weights.

A value depends on the seed, the path of its leaf and its index in the whole array, and on nothing
else: not on the mesh, the sharding, the number of processes or the backend. Each device computes
its own shards in one fused program, so nothing but the arrays themselves takes memory.

A draw is the sum of four 16-bit uniforms (the Irwin-Hall distribution with n = 4), an integer that
is normal to within 2 % of its standard deviation and that every backend computes alike. The dtype's
bit pattern is then put together with integer operations: no rounding mode, flush-to-zero or
transcendental function of a backend can change a bit of it.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding

from orbax_bench_core.config import ArraySpec, Spec
from orbax_bench_core.state import hashing, layout

PyTree = Any

SCALARS: Final[Mapping[str, int | str]] = {"int": 1234, "str": "synthetic"}
"""Values of the `int` and `str` leaves; not zero or empty, so that a lost value is seen."""

_PARTS: Final = {"complex64": "float32", "complex128": "float64"}


def generate(spec: Spec, *, seed: int, mesh: Mesh | None) -> PyTree:
    """Makes the tree that a spec describes.

    Args:
        spec: Named leaves, each an array or one of the scalars `int` and `str`.
        seed: Seed of the values; the same seed gives the same values on any mesh.
        mesh: Where arrays lie; None puts each on one device.

    Returns:
        The tree, its arrays ready on their devices.
    """
    return jax.block_until_ready(_tree(spec, seed, mesh, ""))


def _tree(spec: Spec, seed: int, mesh: Mesh | None, prefix: str) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, node in spec.items():
        path = f"{prefix}{name}"
        if isinstance(node, Mapping):
            tree[name] = _tree(node, seed, mesh, f"{path}.")
        elif isinstance(node, ArraySpec):
            made = _array(path, node, seed, None if node.host else mesh)
            # A copy: what JAX hands out shares its memory and cannot be written to.
            tree[name] = np.array(made) if node.host else made
        else:
            tree[name] = SCALARS[node]
    return tree


def _array(path: str, spec: ArraySpec, seed: int, mesh: Mesh | None) -> jax.Array:
    layout.check_dtype(path, spec.dtype)
    program = _program(spec.shape, spec.dtype, layout.sharding_of(path, spec, mesh))
    with layout.wide(spec.shape, spec.dtype):
        return program(hashing.leaf_key(seed, path))


@functools.cache
def _program(
    shape: tuple[int, ...], dtype: str, sharding: NamedSharding | None
) -> Callable[[Any], jax.Array]:
    """Compiles once for all leaves of one shape, dtype and sharding; the key is an argument."""
    block = shape if sharding is None else sharding.shard_shape(shape)

    def make(key: jax.Array) -> jax.Array:
        offsets = None if sharding is None else layout.offsets(sharding, shape)
        low, high = hashing.linear_index(block, global_shape=shape, offsets=offsets)
        if dtype not in _PARTS:
            return encode(dtype, hashing.random_word(low, high, key))
        real, imaginary = (
            encode(_PARTS[dtype], hashing.random_word(low, high, part))
            for part in (key, hashing.imaginary_key(key))
        )
        return lax.complex(real, imaginary)

    if sharding is None:
        return layout.compiled(make)
    return layout.over_shards(
        make, sharding, inputs=jax.sharding.PartitionSpec(), outputs=sharding.spec
    )


DRAW_BITS: Final = 18
"""Draws lie in [-2**18, 2**18)."""

_WEIGHT_BOUND: Final = -4
"""Floats of enough range are bounded by 2**-4, so their standard deviation is 0.018."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatFormat:
    """The bits of a floating-point number that follow the normal distribution."""

    bits: int  # computed from the draw: sign, exponent and leading mantissa bits
    mantissa: int  # bits among them
    min_exponent: int  # of the smallest normal number
    bias: int  # of the exponent
    bound: int  # values lie in [-2**bound, 2**bound]
    signed: bool  # whether there is a sign bit, and with it a zero
    negative_zero: bool  # formats without use that pattern for NaN
    random_bits: int  # below them, uniform


def float_format(name: str) -> FloatFormat:
    """Describes the values of a floating-point dtype."""
    # Where the exponent's range allows, values have the scale of trained weights; narrow formats
    # use their whole range, as scaled quantisation does.
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
    """Makes one value of a real dtype from each random word of 32 bits."""
    # Floats are normally distributed, integers normal over their range with a standard deviation of
    # 0.29 times its half, booleans fair.
    if name == "bool":
        return (word >> 31).astype(jnp.bool_)
    second = hashing.next_word(word)
    halves = (word & 0xFFFF) + (word >> 16) + (second & 0xFFFF) + (second >> 16)
    # Odd, so that no draw is zero, which has no exponent.
    draw = halves.astype(jnp.int32) * 2 - 262139
    third = hashing.next_word(second)
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
    """Returns the bits of draw * 2**(bound - 18) in the format, as uint32."""
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
    high = hashing.next_word(word).astype(dtype) >> (64 - bits)
    return (high << 32) | word.astype(dtype)
