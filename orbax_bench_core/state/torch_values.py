"""Values of arrays as tensors of PyTorch, and back: the same bits and dtypes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orbax_bench_core.interface import UnmetNeed

if TYPE_CHECKING:
    import torch


_DTYPES: Final = frozenset(
    {
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
        *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    }
)
"""Dtypes that JAX and PyTorch call by the same name and store as the same bits."""


def torch_dtype(name: str, dtype: str) -> torch.dtype:
    """Returns the dtype of the same name."""
    import torch

    found = getattr(torch, dtype, None) if dtype in _DTYPES else None
    if found is None:
        raise UnmetNeed(
            f"PyTorch {torch.__version__} has no {dtype}, which {name!r} is: leave it out, or give "
            f"one of {', '.join(sorted(_DTYPES))}"
        )
    kind: torch.dtype = found
    return kind


def to_torch(values: np.ndarray[Any, Any], dtype: torch.dtype) -> torch.Tensor:
    """Returns a tensor over the memory of an array, which it must not write to."""
    import torch

    bits = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    with warnings.catch_warnings():
        # An array of JAX cannot be written to, and is not.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        flat: torch.Tensor = torch.from_numpy(bits)
    return flat.view(dtype).reshape(values.shape)


def to_numpy(
    tensor: torch.Tensor, dtype: np.dtype[Any], shape: Sequence[int]
) -> np.ndarray[Any, Any]:
    """Returns the values of a tensor of this form, on any device.

    Args:
        tensor: What was loaded.
        dtype: The dtype that was saved.
        shape: The shape that was saved.

    Raises:
        ValueError: It has another dtype or shape.
    """
    import torch

    wanted = torch_dtype("", dtype.name)
    if tensor.dtype != wanted or tuple(tensor.shape) != tuple(shape):
        raise ValueError(
            f"{tensor.dtype} {list(tensor.shape)} was loaded where {wanted} {list(shape)} was saved"
        )
    bits = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    values: np.ndarray[Any, Any] = bits.numpy().view(dtype).reshape(tuple(shape))
    return values
