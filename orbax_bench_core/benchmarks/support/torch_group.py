"""Process group and device of a rank of PyTorch, by the processes and devices of JAX."""

from __future__ import annotations

import atexit
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

from orbax_bench_core.authoring import UnmetNeed

if TYPE_CHECKING:
    import torch


def import_torch(benchmark: str) -> ModuleType:
    """Returns PyTorch."""
    try:
        import torch
        import torch.distributed.checkpoint
        import torch.distributed.tensor
    except ImportError as error:
        raise UnmetNeed(
            f"{benchmark} needs PyTorch 2.7 or later: pip install 'orbax-bench[torch]' ({error})"
        ) from None
    found: ModuleType = torch
    return found


def device_of_rank(benchmark: str) -> torch.device:
    """Returns where the tensors of this process go: where JAX has its arrays."""
    import jax

    torch = import_torch(benchmark)
    platform = jax.default_backend()
    if platform == "cpu":
        return torch.device("cpu")
    if platform != "gpu":
        raise UnmetNeed(
            f"{benchmark} needs CPUs or GPUs: JAX runs on {platform} here, which PyTorch "
            "cannot use; set JAX_PLATFORMS=cpu"
        )
    if not torch.cuda.is_available():
        raise UnmetNeed(
            f"{benchmark} needs a PyTorch with CUDA where JAX runs on GPUs; here is "
            f"{torch.__version__}, which finds none"
        )
    device = torch.device("cuda", jax.local_devices()[0].local_hardware_id or 0)
    torch.cuda.set_device(device)
    return device


def join_ranks(device: torch.device) -> None:
    """Makes the default process group, once per process; every process must call.

    Ranks are the indices of JAX's processes. They meet where `MASTER_ADDR` and `MASTER_PORT` say
    when both are set, as `torchrun` does, and otherwise on the host of JAX's process 0.
    """
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
