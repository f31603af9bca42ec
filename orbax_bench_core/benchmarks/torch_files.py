"""Saving and loading one file per process, as libraries do that know nothing of processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from orbax_bench_core.authoring import TestContext, TestResult
from orbax_bench_core.benchmarks import torch_storage
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    import torch
    from etils import epath

Tensors = Mapping[str, Any]


def round_trip(
    context: TestContext,
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

    Args:
        context: The repeat; its options are `TorchOptions`.
        benchmark: Who measures.
        suffix: Suffix of the file names.
        write: Writes one file.
        read: Reads one file, into memory on a device.
        check: Raises `UnmetNeed` for tensors that a file cannot hold; None takes all.
    """
    import jax

    from orbax_bench_core.benchmarks.hosts import await_all_hosts
    from orbax_bench_core.benchmarks.saving import measure_parts
    from orbax_bench_core.benchmarks.torch_group import synchronize
    from orbax_bench_core.benchmarks.torch_options import TorchData, TorchOptions

    metrics, options = Metrics(), context.options
    assert isinstance(options, TorchOptions)
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
            _sync(file)
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
    """Returns tensors that no longer need the file that they were mapped from.

    Args:
        tensors: A state dict; what is no tensor stays as it is.
    """
    import torch

    return {
        name: one.clone() if isinstance(one, torch.Tensor) and one.device.type == "cpu" else one
        for name, one in tensors.items()
    }


def _sync(file: epath.Path) -> None:
    if not torch_storage.is_local(file):
        return
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
