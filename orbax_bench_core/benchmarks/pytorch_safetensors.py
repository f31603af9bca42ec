"""Save and load with the safetensors library for PyTorch, one file per process."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    TestContext,
    TestResult,
    benchmark_options,
    optional_module,
)
from orbax_bench_core.benchmarks.support import pytorch
from orbax_bench_core.benchmarks.support.pytorch import TorchOptions
from orbax_bench_core.benchmarks.support.safetensors import SUFFIX, check_holds
from orbax_bench_core.benchmarks.support.torch_storage import is_local

if TYPE_CHECKING:
    import torch
    from etils import epath

_NAME = "pytorch_safetensors"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PyTorchSafetensorsOptions(TorchOptions):
    """Options of `pytorch_safetensors`."""


@benchmark_options(PyTorchSafetensorsOptions)
class PyTorchSafetensors(BenchmarksGenerator[PyTorchSafetensorsOptions]):
    """Measures `save_blocking`, `save` and `load` of one safetensors file per process.

    With `durable: true` also `save_durable`. Every process saves and loads the shards that it
    holds; nothing is saved in the background. The library maps a local file into memory, so the
    load copies the tensors out of it: only then are they there.
    """

    def test_fn(self, context: TestContext[PyTorchSafetensorsOptions]) -> TestResult:
        """Runs one save and one load."""
        optional_module("safetensors", "torch", _NAME)
        return pytorch.round_trip(
            context, _NAME, suffix=SUFFIX, write=_write, read=_read, check=_check
        )


def _write(file: epath.Path, tensors: pytorch.Tensors) -> None:
    from safetensors import torch as safetensors

    if is_local(file):
        safetensors.save_file(dict(tensors), str(file))
    else:
        file.write_bytes(safetensors.save(dict(tensors)))


def _read(file: epath.Path, device: torch.device) -> dict[str, Any]:
    from safetensors import torch as safetensors

    if is_local(file):
        return pytorch.in_memory(safetensors.load_file(str(file), device=str(device)))
    return {name: tensor.to(device) for name, tensor in safetensors.load(file.read_bytes()).items()}


def _check(tensors: pytorch.Tensors) -> None:
    import torch

    for name, tensor in tensors.items():
        array = isinstance(tensor, torch.Tensor)
        dtype = str(tensor.dtype).removeprefix("torch.") if array else type(tensor).__name__
        check_holds(name, dtype, array=array)
