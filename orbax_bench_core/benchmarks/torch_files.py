"""Saves and loads of PyTorch with one file per process: `torch.save`, and safetensors."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import pytorch
from orbax_bench_core.benchmarks.support.options import await_all_hosts
from orbax_bench_core.benchmarks.support.safetensors import check_holds
from orbax_bench_core.benchmarks.support.saving import measure_parts
from orbax_bench_core.inventory import SAFETENSORS
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    import torch
    from etils import epath

_Tensors = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TorchSaveOptions(pytorch.TorchOptions):
    """Options of `torch_save`.

    Attributes:
        mmap: Map the file into memory and copy the tensors out of it, rather than read it; needs
            local storage.
    """

    mmap: interface.Sweepable[bool] = False


@interface.benchmark_options(TorchSaveOptions)
class TorchSave(interface.BenchmarksGenerator[TorchSaveOptions]):
    """Measures `save_blocking`, `save` and `load` of one file per process.

    With `durable: true` also `save_durable`. Every process saves and loads the shards that it
    holds; nothing is saved in the background.
    """

    def test_fn(self, context: interface.TestContext[TorchSaveOptions]) -> interface.TestResult:
        """Runs one save and one load."""
        options = context.options
        mmap = options.mmap
        if mmap and not pytorch.is_local(context.path):
            raise interface.UnmetNeed(f"mmap: true needs local storage; this is {context.path}")
        return _round_trip(
            context,
            "torch_save",
            suffix=".pt",
            write=_write_pt,
            read=lambda file, device: _read_pt(file, device, mmap),
        )


def _write_pt(file: epath.Path, tensors: _Tensors) -> None:
    import torch

    if pytorch.is_local(file):
        torch.save(dict(tensors), str(file))
        return
    with file.open("wb") as opened:
        torch.save(dict(tensors), opened)


def _read_pt(file: epath.Path, device: torch.device, mmap: bool) -> dict[str, Any]:
    import torch

    if pytorch.is_local(file):
        found = torch.load(str(file), map_location=device, weights_only=True, mmap=mmap)
        return _in_memory(found) if mmap else dict(found)
    with file.open("rb") as opened:
        return dict(torch.load(opened, map_location=device, weights_only=True))


@interface.benchmark_options(pytorch.TorchOptions)
class PyTorchSafetensors(interface.BenchmarksGenerator[pytorch.TorchOptions]):
    """Measures `save_blocking`, `save` and `load` of one safetensors file per process.

    With `durable: true` also `save_durable`. Every process saves and loads the shards that it
    holds; nothing is saved in the background. The library maps a local file into memory, so the
    load copies the tensors out of it: only then are they there.
    """

    def test_fn(self, context: interface.TestContext[pytorch.TorchOptions]) -> interface.TestResult:
        """Runs one save and one load."""
        interface.optional_module("safetensors", "torch", "pytorch_safetensors")
        return _round_trip(
            context,
            "pytorch_safetensors",
            suffix=SAFETENSORS,
            write=_write_safetensors,
            read=_read_safetensors,
            check=_check,
        )


def _write_safetensors(file: epath.Path, tensors: _Tensors) -> None:
    from safetensors import torch as safetensors

    if pytorch.is_local(file):
        safetensors.save_file(dict(tensors), str(file))
    else:
        file.write_bytes(safetensors.save(dict(tensors)))


def _read_safetensors(file: epath.Path, device: torch.device) -> dict[str, Any]:
    from safetensors import torch as safetensors

    if pytorch.is_local(file):
        return _in_memory(safetensors.load_file(str(file), device=str(device)))
    return {name: tensor.to(device) for name, tensor in safetensors.load(file.read_bytes()).items()}


def _check(tensors: _Tensors) -> None:
    import torch

    for name, tensor in tensors.items():
        array = isinstance(tensor, torch.Tensor)
        dtype = str(tensor.dtype).removeprefix("torch.") if array else type(tensor).__name__
        check_holds(name, dtype, array=array)


def _round_trip(
    context: interface.TestContext[pytorch.TorchOptions],
    benchmark: str,
    *,
    suffix: str,
    write: Callable[[epath.Path, _Tensors], None],
    read: Callable[[epath.Path, torch.device], dict[str, Any]],
    check: Callable[[_Tensors], None] | None = None,
) -> interface.TestResult:
    """Measures `save_blocking`, `save` and `load` of what each process holds."""
    # A save ends when every process has written its file, a load when this process has its tensors.
    # Arrays that are replicated are in the file of every process.
    import jax

    metrics, options = Metrics(), context.options
    data = pytorch.TorchData.of(context, benchmark)
    tensors = data.local()
    if check is not None:
        check(tensors)
    path = context.path / "ckpt"
    path.mkdir(parents=True, exist_ok=True)
    file = path / f"model-{jax.process_index():05d}-of-{jax.process_count():05d}{suffix}"

    def save() -> None:
        write(file, tensors)
        if options.sync_files and pytorch.is_local(file):  # an object store's files always are
            _sync_file(file)
        await_all_hosts(f"{benchmark}_save")

    await_all_hosts(f"{benchmark}_ready")
    measure_parts(
        metrics, context, path, save, None, num_bytes=data.num_bytes, collectors=options.collectors
    )
    tensors.clear()
    data.free_if_scarce()
    context.prepare_load("load", path)
    with metrics.measure("load", options.collectors, num_bytes=data.num_bytes):
        loaded = read(file, data.device)
        pytorch.synchronize(data.device)
    data.verify(context, loaded)
    return interface.TestResult(metrics=metrics)


def _in_memory(tensors: _Tensors) -> dict[str, Any]:
    """Returns tensors that no longer need the file that they were mapped from."""
    import torch

    return {
        name: tensor.clone()
        if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu"
        else tensor
        for name, tensor in tensors.items()
    }


def _sync_file(file: epath.Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
