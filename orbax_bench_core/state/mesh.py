"""Device meshes: built from `mesh_config`, or cut from a larger one."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import Mesh

from orbax_bench_core.config import MeshConfig
from orbax_bench_core.state.tree import StateError

DeviceGrid = np.ndarray[Any, np.dtype[Any]]


class MeshDoesNotFit(StateError):
    """The devices that are here cannot form the mesh; the message says why."""


def build_mesh(config: MeshConfig) -> Mesh:
    """Lays all devices out as a mesh.

    Without `dcn_parallelism` the devices are one slice. With it, each axis is the product of its
    size across granules (slower network, outer) and within one (faster, inner). A granule is a
    slice, or a process with `process_is_granule`. CPU devices belong to no slice: there, whole
    processes form the granules, and the devices of a single process are cut into equal groups.
    """
    return Mesh(device_grid(config, jax.devices()), config.mesh_axes)


def device_grid(config: MeshConfig, devices: Sequence[Any]) -> DeviceGrid:
    """Arranges devices in the shape of a mesh; `build_mesh` without the `Mesh` around it."""
    if len(devices) != config.num_devices:
        raise MeshDoesNotFit(
            f"mesh {config.label} needs {config.num_devices} devices; {len(devices)} are here; "
            "change ici_parallelism or dcn_parallelism, or run on another number of devices"
        )
    ordered = sorted(devices, key=lambda device: (device.process_index, device.id))
    granules = _granules(config, ordered)
    # A block per granule, then the two dimensions of each axis beside each other, outer first.
    blocks = np.stack([_slice_grid(config, granule) for granule in granules])
    grid = blocks.reshape(config.dcn_shape + config.ici_shape)
    rank = len(config.mesh_axes)
    pairs = [axis for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for axis in pair]
    return grid.transpose(pairs).reshape(config.shape)


def _slice_grid(config: MeshConfig, devices: Sequence[Any]) -> DeviceGrid:
    try:
        return mesh_utils.create_device_mesh(
            config.ici_shape, devices, allow_split_physical_axes=config.allow_split_physical_axes
        )
    except (NotImplementedError, ValueError) as error:
        raise MeshDoesNotFit(
            f"mesh {config.label} cannot be laid out on these {len(devices)} "
            f"{devices[0].device_kind} devices; try another shape, or "
            f"allow_split_physical_axes: true ({error})"
        ) from error


def _granules(config: MeshConfig, devices: Sequence[Any]) -> list[Sequence[Any]]:
    if config.dcn_parallelism is None:
        return [devices]
    count = math.prod(config.dcn_shape)
    several = len({device.process_index for device in devices}) > 1
    if devices[0].platform == "cpu" and not (config.process_is_granule and several):
        return _simulated_slices(config, devices, count)
    unit = "process" if config.process_is_granule else "slice"
    attribute = "process_index" if config.process_is_granule else "slice_index"
    groups: dict[int, list[Any]] = {}
    for device in devices:
        groups.setdefault(getattr(device, attribute, 0), []).append(device)
    sizes = {len(group) for group in groups.values()}
    if len(groups) != count or len(sizes) != 1:
        found = ", ".join(str(len(groups[key])) for key in sorted(groups))
        raise MeshDoesNotFit(
            f"mesh {config.label} needs granules (unit: {unit}) of equal size, {count} in number; "
            f"here {'are' if len(groups) > 1 else 'is'} {len(groups)} with {found} devices; change "
            "dcn_parallelism or process_is_granule"
        )
    return [groups[key] for key in sorted(groups)]


def _simulated_slices(
    config: MeshConfig, devices: Sequence[Any], count: int
) -> list[Sequence[Any]]:
    """Cuts CPU devices, in process order, into slices that share or split processes evenly."""
    size = len(devices) // count
    per_process = Counter(device.process_index for device in devices)
    if any(size % held and held % size for held in per_process.values()):
        raise MeshDoesNotFit(
            f"mesh {config.label} needs slices of {size} devices, but the processes hold "
            f"{sorted(per_process.values())}; a slice takes whole processes or a process whole "
            "slices: change dcn_parallelism or the number of processes"
        )
    return [devices[start : start + size] for start in range(0, len(devices), size)]


def first_devices(mesh: Mesh, count: int) -> Mesh:
    """Returns the mesh that the first devices of another one form.

    Args:
        mesh: The mesh of all devices.
        count: How many of them; the longest axis becomes shorter, and the others stay.

    Raises:
        StateError: They form no mesh with the same axes, or leave a process without a device.
    """
    # Its longest axis becomes shorter; the others stay, so that whatever they shard stays as it is.
    # Of several processes each keeps a part of its devices: all of them save, load and compute.
    sizes = dict(mesh.shape)
    longest = max(sizes, key=lambda axis: sizes[axis])
    others = mesh.size // sizes[longest]
    if not 0 < count <= mesh.size or count % others:
        allowed = [others * length for length in range(1, sizes[longest] + 1)]
        raise StateError(
            f"the mesh {sizes} has {mesh.size} devices, and {count} of them form no mesh with the "
            f"same axes; give one of {allowed}, or a mesh_config with more devices"
        )
    axis = list(sizes).index(longest)
    length, processes = count // others, _processes(mesh.devices)
    step = 1 if len(processes) == 1 else sizes[longest] / length
    kept = np.take(mesh.devices, [int(index * step) for index in range(length)], axis)
    if idle := processes - _processes(kept):
        raise StateError(
            f"{count} of the {mesh.size} devices of the mesh {sizes} leave processes "
            f"{sorted(idle)} of {len(processes)} without a device; give a multiple of "
            f"{len(processes)}, or set processes: 1 under execution"
        )
    return Mesh(kept, mesh.axis_names)


def _processes(devices: Any) -> set[int]:
    return {device.process_index for device in devices.flat}
