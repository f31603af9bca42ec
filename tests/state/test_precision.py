from __future__ import annotations

import jax
import pytest

from orbax_bench_core.state import layout
from orbax_bench_core.state.tree import StateError


@pytest.mark.parametrize("dtype", sorted(layout.NEEDS_X64))
def test_64_bit_dtypes_need_64_bit_mode(dtype: str) -> None:
    with jax.enable_x64(False), pytest.raises(StateError, match=r"leaf 'w': .* JAX_ENABLE_X64"):
        layout.check_dtype("w", dtype)


@pytest.mark.parametrize("dtype", sorted(layout.NEEDS_X64))
def test_64_bit_dtypes_pass_in_64_bit_mode(dtype: str) -> None:
    layout.check_dtype("w", dtype)


@pytest.mark.parametrize("dtype", sorted(layout.NUMPY_ONLY))
def test_dtypes_that_only_numpy_holds_are_refused(dtype: str) -> None:
    with pytest.raises(StateError, match=f"leaf 'a.b': JAX cannot compute with {dtype}"):
        layout.check_dtype("a.b", dtype)


def test_indices_are_wide_from_two_to_the_32_elements_on() -> None:
    assert not layout.needs_wide_index((2**16, 2**16 - 1))
    assert layout.needs_wide_index((2**16, 2**16))
