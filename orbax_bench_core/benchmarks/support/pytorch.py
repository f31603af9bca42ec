"""PyTorch side of the benchmarks: options, data, and round trips of one file per process."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from orbax_bench_core.authoring import (
    Sweepable,
    TestContext,
    TestResult,
    UnmetNeed,
    optional_module,
)
from orbax_bench_core.benchmarks.support.needs import require_tree
from orbax_bench_core.benchmarks.support.options import (
    CollectorOptions,
    await_all_hosts,
    delete_if_scarce,
)
from orbax_bench_core.benchmarks.support.safetensors import SUFFIX, read_arrays
from orbax_bench_core.benchmarks.support.saving import load_target, measure_parts
from orbax_bench_core.benchmarks.support.torch_group import device_of_rank, synchronize
from orbax_bench_core.benchmarks.support.torch_storage import sync_file
from orbax_bench_core.files import absolute, matching
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    import torch
    from etils import epath

    from orbax_bench_core.state.torch import TorchLayout


Tensors = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TorchOptions(CollectorOptions):
    """Options of a benchmark of PyTorch.

    Attributes:
        sync_files: Have every file reach stable storage before a save ends, as Orbax always does;
            in an object store they always are.
        join_local_shards: Where a process has several devices, have its shards as one tensor; false
            refuses, because Orbax then saves and loads other shards than PyTorch.
        metric_tracemalloc_enabled: Also trace Python allocations, which slows the operation down.
    """

    sync_files: Sweepable[bool] = True
    join_local_shards: Sweepable[bool] = False
    metric_tracemalloc_enabled: Sweepable[bool] = False


@dataclasses.dataclass(frozen=True)
class TorchData:
    """Data that one repeat saves and loads.

    Attributes:
        tree: As JAX has it; the repeat's own data, or those of a reference checkpoint.
        layout: How PyTorch has it.
        device: Where the tensors of this process go.
        num_bytes: Bytes of all arrays, replicas once.
        expected: Digest of a tree that is not the repeat's own data; None for those.
    """

    tree: Any
    layout: TorchLayout
    device: torch.device
    num_bytes: int
    expected: Any

    @classmethod
    def of(
        cls, context: TestContext[TorchOptions], benchmark: str, reference: str | None = None
    ) -> TorchData:
        """Finds out what a repeat saves, and makes it ready."""
        import jax

        from orbax_bench_core.state import digest, tree_bytes
        from orbax_bench_core.state.torch import TorchLayout

        options = context.options
        device = device_of_rank(benchmark)
        if reference is None:
            tree, expected = require_tree(context, benchmark, of_all=False), None
        else:
            tree = reference_tree(reference)
            expected = None if context.verifier is None else digest(tree)
        layout = TorchLayout(load_target(tree), device, join=options.join_local_shards)
        return cls(jax.block_until_ready(tree), layout, device, tree_bytes(tree), expected)

    def local(self) -> dict[str, Any]:
        """Returns what this process saves, as tensors that are ready on their device."""
        tensors = self.layout.local(self.tree)
        synchronize(self.device)
        return tensors

    def free_if_scarce(self) -> None:
        """Frees what was saved, where what is loaded would not fit beside it."""
        delete_if_scarce(self.tree)

    def verify(self, context: TestContext, tensors: dict[str, Any]) -> None:
        """Checks what was loaded; call it outside any measured block."""
        if context.verifier is not None:
            context.verify(self.layout.to_jax(tensors), self.expected, against="saved")


def round_trip(
    context: TestContext[TorchOptions],
    benchmark: str,
    *,
    suffix: str,
    write: Callable[[epath.Path, Tensors], None],
    read: Callable[[epath.Path, torch.device], dict[str, Any]],
    check: Callable[[Tensors], None] | None = None,
) -> TestResult:
    """Measures `save_blocking`, `save` and `load` of what each process holds.

    A save ends when every process has written its file, a load when this process has its tensors.
    Arrays that are replicated are in the file of every process.
    """
    import jax

    metrics, options = Metrics(), context.options
    data = TorchData.of(context, benchmark)
    tensors = data.local()
    if check is not None:
        check(tensors)
    path = context.path / "ckpt"
    path.mkdir(parents=True, exist_ok=True)
    file = path / f"model-{jax.process_index():05d}-of-{jax.process_count():05d}{suffix}"

    def save() -> None:
        write(file, tensors)
        if options.sync_files:
            sync_file(file)
        await_all_hosts(f"{benchmark}_save")

    await_all_hosts(f"{benchmark}_ready")
    measure_parts(
        metrics,
        context,
        path,
        save,
        None,
        num_bytes=data.num_bytes,
        collectors=options.collectors,
    )
    tensors.clear()
    data.free_if_scarce()
    context.prepare_load("load", path)
    with metrics.measure("load", options.collectors, num_bytes=data.num_bytes):
        loaded = read(file, data.device)
        synchronize(data.device)
    data.verify(context, loaded)
    return TestResult(metrics=metrics)


def in_memory(tensors: Tensors) -> dict[str, Any]:
    """Returns tensors that no longer need the file that they were mapped from."""
    import torch

    return {
        name: tensor.clone()
        if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu"
        else tensor
        for name, tensor in tensors.items()
    }


def reference_tree(directory: str) -> Any:
    """Returns the arrays of a directory of safetensors files as bfloat16.

    Each is split along its first dimension among the processes, or whole on each where their number
    does not divide it. A process reads its own part only, into its first device.
    """
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    safetensors = optional_module("safetensors", "torch", "reference_checkpoint_path")
    folder = absolute(directory)
    try:
        read_arrays(folder)
    except ValueError as error:
        raise UnmetNeed(f"reference_checkpoint_path: {error}") from None
    first = {device.process_index: device for device in reversed(jax.devices())}
    world = len(first)
    mesh = Mesh(np.array([first[rank] for rank in range(world)], dtype=object), ("rank",))
    tree = {}
    for file in sorted(matching(folder, f"*{SUFFIX}")):
        with safetensors.safe_open(str(file), framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118 - not a mapping
                part = opened.get_slice(name)
                shape = tuple(part.get_shape())
                part = part if shape else {(): opened.get_tensor(name)}
                split = bool(shape) and shape[0] % world == 0
                tree[name] = jax.make_array_from_callback(
                    shape,
                    NamedSharding(mesh, PartitionSpec("rank") if split else PartitionSpec()),
                    functools.partial(_bfloat16, part),
                )
    return tree


def _bfloat16(part: Any, index: Any) -> Any:
    import torch
    from jax.numpy import bfloat16

    values = part[index].to(torch.bfloat16).contiguous()
    return values.view(torch.int16).numpy().view(bfloat16)
