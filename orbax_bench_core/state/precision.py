"""Which dtypes JAX can hold here: some need 64-bit mode, a few exist only in NumPy."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Final

import jax

from orbax_bench_core.state import jax_api
from orbax_bench_core.state.errors import StateError

NEEDS_X64: Final = frozenset({"int64", "uint64", "float64", "complex128"})
"""Dtypes that JAX silently narrows unless `jax_enable_x64` is on."""

NUMPY_ONLY: Final = frozenset({"int1", "uint1", "float6_e2m3fn", "float6_e3m2fn"})
"""Dtypes that JAX names but whose arithmetic it cannot compile."""

_LATE: Final = frozenset({"float4_e2m1fn", "float8_e8m0fnu"})
"""Dtypes that the oldest JAX of ours lacks."""


def check_dtype(leaf: str, dtype: str) -> None:
    """Checks that arrays of `dtype` can be made by this process.

    Args:
        leaf: Dotted path of the leaf, for the message.
        dtype: Canonical name of the dtype.

    Raises:
        StateError: JAX cannot compute with the dtype or does not have it, or it needs 64-bit mode,
            which is off.
    """
    if dtype in NUMPY_ONLY:
        raise StateError(
            f"leaf {leaf!r}: JAX cannot compute with {dtype}; use int2, uint2, float4_e2m1fn or a "
            "wider dtype"
        )
    if dtype in _LATE and not hasattr(jax.numpy, dtype):
        raise StateError(
            f"leaf {leaf!r}: JAX {jax.__version__} has no {dtype}; use a later JAX or another dtype"
        )
    if dtype in NEEDS_X64 and jax.dtypes.canonicalize_dtype("int64").itemsize < 8:
        raise StateError(
            f"leaf {leaf!r}: {dtype} needs 64-bit mode, which is off; set JAX_ENABLE_X64=true or "
            "use a dtype of at most 32 bits"
        )


def needs_wide_index(shape: Sequence[int]) -> bool:
    """Says whether the linear index of an element of `shape` may exceed 32 bits."""
    return math.prod(shape) >= 2**32


def wide(shape: Sequence[int], dtype: str) -> contextlib.AbstractContextManager[object]:
    """Returns a context in which a program over such an array may use 64-bit integers.

    Args:
        shape: Global shape of the array.
        dtype: Canonical name of its dtype.
    """
    if dtype in NEEDS_X64 or needs_wide_index(shape):
        return jax_api.enable_x64()
    return contextlib.nullcontext()
