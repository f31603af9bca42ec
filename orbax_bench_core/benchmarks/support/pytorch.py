"""PyTorch's side of its benchmarks: options, data, device and process group of a rank."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support.needs import require_tree
from orbax_bench_core.benchmarks.support.options import CollectorOptions, delete_if_scarce
from orbax_bench_core.benchmarks.support.saving import load_target
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import absolute
from orbax_bench_core.inventory import read_checkpoint

if TYPE_CHECKING:
    import torch
    from etils import epath

    from orbax_bench_core.state.torch import TorchLayout


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

    sync_files: interface.Sweepable[bool] = True
    join_local_shards: interface.Sweepable[bool] = False
    metric_tracemalloc_enabled: interface.Sweepable[bool] = False


@dataclasses.dataclass(frozen=True)
class TorchData:
    """Data that one repeat saves and loads: its own, or those of a reference checkpoint."""

    tree: Any
    layout: TorchLayout
    device: torch.device
    num_bytes: int  # replicas once
    expected: Any  # the digest of a tree that is not the repeat's own

    @classmethod
    def of(
        cls,
        context: interface.TestContext[TorchOptions],
        benchmark: str,
        reference: str | None = None,
    ) -> TorchData:
        """Finds out what a repeat saves, and makes it ready.

        Args:
            context: The repeat.
            benchmark: Name of the benchmark, for messages.
            reference: A checkpoint to take the values from; None takes the repeat's own data.

        Raises:
            UnmetNeed: There is no data, PyTorch is missing, or it cannot use the devices of JAX.
        """
        import jax

        from orbax_bench_core.state import digest, tree_bytes
        from orbax_bench_core.state.torch import TorchLayout

        options = context.options
        device = device_of_rank(benchmark)
        if reference is None:
            tree, expected = require_tree(context, benchmark, of_all=False), None
        else:
            tree = _reference_tree(reference)
            expected = None if context.verifier is None else digest(tree)
        layout = TorchLayout(load_target(tree), device, join=options.join_local_shards)
        return cls(jax.block_until_ready(tree), layout, device, tree_bytes(tree), expected)

    def local(self) -> dict[str, Any]:
        """Returns the part that this process saves, as tensors ready on their device."""
        tensors = self.layout.local(self.tree)
        synchronize(self.device)
        return tensors

    def free_if_scarce(self) -> None:
        """Frees what was saved, where what is loaded would not fit beside it."""
        delete_if_scarce(self.tree)

    def verify(self, context: interface.TestContext, tensors: dict[str, Any]) -> None:
        """Checks what was loaded; call it outside any measured block."""
        if context.verifier is not None:
            context.verify(self.layout.to_jax(tensors), self.expected, against="saved")


def _reference_tree(directory: str) -> Any:
    """Returns the arrays of a directory of safetensors files as bfloat16."""
    # Each is split along its first dimension among the processes, or whole on each where their
    # number does not divide it. A process reads its own part only, into its first device.
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    safetensors = interface.optional_module("safetensors", "torch", "reference_checkpoint_path")
    try:
        stored = read_checkpoint(directory)
        if not stored.is_safetensors:
            raise UserError(f"{directory!r} holds no .safetensors files")
        stored.check()
    except UserError as error:
        raise interface.UnmetNeed(f"reference_checkpoint_path: {error}") from None
    known = {array.name for array in stored.arrays}
    first = {device.process_index: device for device in reversed(jax.devices())}
    world = len(first)
    mesh = Mesh(np.array([first[rank] for rank in range(world)], dtype=object), ("rank",))
    tree = {}
    for file in stored.sizes:
        path = absolute(directory) / str(file) if absolute(directory).is_dir() else directory
        with safetensors.safe_open(str(path), framework="pt") as opened:
            for name in known.intersection(opened.keys()):
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


def _import_torch(benchmark: str) -> ModuleType:
    try:
        import torch
        import torch.distributed.checkpoint
        import torch.distributed.tensor
    except ImportError as error:
        raise interface.UnmetNeed(
            f"{benchmark} needs PyTorch 2.7 or later: pip install 'orbax-bench[torch]' ({error})"
        ) from None
    found: ModuleType = torch
    return found


def device_of_rank(benchmark: str) -> torch.device:
    """Returns where the tensors of this process go: where JAX has its arrays.

    Raises:
        UnmetNeed: PyTorch is missing, has no CUDA where JAX runs on GPUs, or JAX runs on TPUs.
    """
    import jax

    torch = _import_torch(benchmark)
    platform = jax.default_backend()
    if platform == "cpu":
        return torch.device("cpu")
    if platform != "gpu":
        raise interface.UnmetNeed(
            f"{benchmark} needs CPUs or GPUs: JAX runs on {platform} here, which PyTorch "
            "cannot use; set JAX_PLATFORMS=cpu"
        )
    if not torch.cuda.is_available():
        raise interface.UnmetNeed(
            f"{benchmark} needs a PyTorch with CUDA where JAX runs on GPUs; here is "
            f"{torch.__version__}, which finds none"
        )
    device = torch.device("cuda", jax.local_devices()[0].local_hardware_id or 0)
    torch.cuda.set_device(device)
    return device


def join_ranks(device: torch.device) -> None:
    """Makes the default process group, once per process; every process must call."""
    # Ranks are the indices of JAX's processes. They meet where `MASTER_ADDR` and `MASTER_PORT` say
    # when both are set, as `torchrun` does, and otherwise on the host of JAX's process 0.
    import jax
    import torch.distributed as dist

    if dist.is_initialized():
        return
    rank, world = jax.process_index(), jax.process_count()
    backend = "gloo" if device.type == "cpu" else "cpu:gloo,cuda:nccl"
    if {"MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys() and world > 1:
        dist.init_process_group(backend, init_method="env://", rank=rank, world_size=world)
    else:
        dist.init_process_group(backend, store=_store(rank, world), rank=rank, world_size=world)
    atexit.register(dist.destroy_process_group)


def is_local(path: epath.Path) -> bool:
    """Says whether a path lies on a file system of this machine."""
    return "://" not in str(path)


def synchronize(device: torch.device) -> None:
    """Waits until a device has done all that it was given."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _store(rank: int, world: int) -> Any:
    import numpy as np
    import torch.distributed as dist
    from jax.experimental import multihost_utils

    if world == 1:
        return dist.HashStore()
    host = os.environ.get("MASTER_ADDR") or _host_of_process_0()
    server = dist.TCPStore(host, 0, is_master=True, wait_for_workers=False) if rank == 0 else None
    # Host 0 takes a free port and tells the others.
    port = int(multihost_utils.broadcast_one_to_all(np.int32(server.port if server else 0)))
    return server or dist.TCPStore(host, port, is_master=False)


def _host_of_process_0() -> str:
    """Returns the name or address at which JAX's coordinator, process 0, is reached."""
    from jax._src import distributed

    address = distributed.global_state.coordinator_address or "127.0.0.1:0"
    return str(address).rpartition(":")[0].strip("[]")
