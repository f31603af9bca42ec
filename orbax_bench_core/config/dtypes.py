"""Dtypes of arrays, by the names of `jax.numpy`."""

from typing import Final

BITS: Final[dict[str, int]] = {
    "bool": 8,
    "int2": 8,
    "int4": 8,
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "uint2": 8,
    "uint4": 8,
    "uint8": 8,
    "uint16": 16,
    "uint32": 32,
    "uint64": 64,
    "float4_e2m1fn": 8,
    "float8_e3m4": 8,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 8,
    "float8_e4m3fn": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "float64": 64,
    "complex64": 64,
    "complex128": 128,
}
"""Bits that one element takes in host memory; sub-byte types take a byte each."""

ALIASES: Final = {
    "bool_": "bool",
    "int_": "int64",
    "uint": "uint64",
    "float_": "float64",
    "single": "float32",
    "double": "float64",
    "complex_": "complex128",
    "csingle": "complex64",
    "cdouble": "complex128",
}
"""Other names that `jax.numpy` has for some of them."""


def canonical(name: str) -> str | None:
    """Returns the canonical name of a dtype, or None when JAX has no such dtype."""
    name = ALIASES.get(name, name)
    return name if name in BITS else None
