"""The checkpoint that Orbax's own framework has PyTorch save: the bfloat16 copy of a model."""

from __future__ import annotations

import functools
from typing import Any


def reference_tree(directory: str) -> Any:
    """Returns the arrays of a directory of safetensors files as bfloat16.

    Each is split along its first dimension among the processes, or whole on each where their number
    does not divide it. A process reads its own part only, into its first device.

    Args:
        directory: Holds one or more `*.safetensors` files, on a local disk.

    Raises:
        UnmetNeed: There is no such file, or the package safetensors is missing.
    """
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from orbax_bench_core.benchmarks import needs
    from orbax_bench_core.benchmarks.safetensors_files import SUFFIX, read_arrays
    from orbax_bench_core.state.locating import absolute

    safetensors = needs.module("safetensors", "torch", "reference_checkpoint_path")
    folder = absolute(directory)
    try:
        read_arrays(folder)
    except ValueError as error:
        raise needs.UnmetNeed(f"reference_checkpoint_path: {error}") from None
    first = {device.process_index: device for device in reversed(jax.devices())}
    world = len(first)
    mesh = Mesh(np.array([first[rank] for rank in range(world)], dtype=object), ("rank",))
    tree = {}
    for file in sorted(folder.glob(f"*{SUFFIX}")):
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
