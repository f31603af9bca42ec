"""Save with `torch.save` and load with `torch.load`, one file per process."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    UnmetNeed,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support import pytorch
from orbax_bench_core.benchmarks.support.pytorch import TorchOptions
from orbax_bench_core.benchmarks.support.torch_storage import is_local

if TYPE_CHECKING:
    import torch
    from etils import epath


@dataclasses.dataclass(frozen=True, kw_only=True)
class TorchSaveOptions(TorchOptions):
    """Options of `torch_save`.

    Attributes:
        mmap: Map the file into memory and copy the tensors out of it, rather than read it; needs
            local storage.
    """

    mmap: Sweepable[bool] = False


@benchmark_options(TorchSaveOptions)
class TorchSave(BenchmarksGenerator[TorchSaveOptions]):
    """Measures `save_blocking`, `save` and `load` of one file per process.

    With `durable: true` also `save_durable`. Every process saves and loads the shards that it
    holds; nothing is saved in the background.
    """

    def test_fn(self, context: TestContext[TorchSaveOptions]) -> TestResult:
        """Runs one save and one load."""
        options = context.options
        mmap = options.mmap
        if mmap and not is_local(context.path):
            raise UnmetNeed(f"mmap: true needs local storage; this is {context.path}")
        return pytorch.round_trip(
            context,
            "torch_save",
            suffix=".pt",
            write=_write,
            read=lambda file, device: _read(file, device, mmap),
        )


def _write(file: epath.Path, tensors: pytorch.Tensors) -> None:
    import torch

    if is_local(file):
        torch.save(dict(tensors), str(file))
        return
    with file.open("wb") as opened:
        torch.save(dict(tensors), opened)


def _read(file: epath.Path, device: torch.device, mmap: bool) -> dict[str, Any]:
    import torch

    if is_local(file):
        found = torch.load(str(file), map_location=device, weights_only=True, mmap=mmap)
        return pytorch.in_memory(found) if mmap else dict(found)
    with file.open("rb") as opened:
        return dict(torch.load(opened, map_location=device, weights_only=True))
