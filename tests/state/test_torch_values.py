"""Values reach PyTorch and come back bit by bit."""

import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("torch", reason="needs PyTorch: make torch")

import torch

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.state.torch_values import to_numpy, to_torch, torch_dtype

pytestmark = pytest.mark.nightly  # which installs PyTorch

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 6), (), (0, 3)])
def test_every_dtype_comes_back(dtype, shape):
    kind = jnp.dtype(dtype)
    bits = np.arange(np.prod(shape) * kind.itemsize, dtype=np.uint8)
    values = (bits % 2 if dtype == "bool" else bits).view(kind).reshape(shape)
    tensor = to_torch(values, torch_dtype("w", dtype))
    assert (str(tensor.dtype), tuple(tensor.shape)) == (f"torch.{dtype}", shape)
    back = to_numpy(tensor, kind, shape)
    assert back.tobytes() == values.tobytes()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float16"])
def test_a_value_means_the_same(dtype):
    values = np.array([0.5, -2.0, 1.5]).astype(jnp.dtype(dtype))
    assert to_torch(values, torch_dtype("w", dtype)).float().tolist() == [0.5, -2.0, 1.5]


def test_a_tensor_lies_over_the_memory_of_its_array():
    values = np.zeros(3, np.float32)
    tensor = to_torch(values, torch.float32)
    values[1] = 7
    assert tensor.tolist() == [0, 7, 0]
    assert tensor.untyped_storage().nbytes() == values.nbytes


@pytest.mark.parametrize("dtype", ["int4", "float8_e3m4", "key<fry>"])
def test_a_dtype_that_pytorch_lacks_is_said(dtype):
    with pytest.raises(UnmetNeed, match=f"has no {dtype}, which 'a.w' is: leave it out"):
        torch_dtype("a.w", dtype)


@pytest.mark.parametrize("tensor", [torch.zeros(3, dtype=torch.float16), torch.zeros(4)])
def test_what_has_another_form_is_noticed(tensor):
    with pytest.raises(ValueError, match=r"was loaded where torch\.float32"):
        to_numpy(tensor, np.dtype("float32"), (3,))
