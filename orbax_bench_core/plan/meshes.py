"""Device meshes by arithmetic alone: shards, replicas and hosts of up to 100,000 devices."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.config import ShardingEntry
from orbax_bench_core.errors import Problem, UserError

if TYPE_CHECKING:
    import numpy as np

MOST_DEVICES: Final = 100_000
_ONE_HOST: Final = 8
"""Meshes of up to so many devices are taken to be on one host unless the user says otherwise."""


@dataclasses.dataclass(frozen=True)
class PlanMesh:
    """Devices in mesh order, the last axis fastest; device d is on host d // devices_per_host.

    Attributes:
        axes: Names of the axes, outermost first.
        sizes: Number of devices along each.
        devices_per_host: Devices that one process holds.
    """

    axes: tuple[str, ...]
    sizes: tuple[int, ...]
    devices_per_host: int

    @property
    def num_devices(self) -> int:
        """Devices of the mesh."""
        return math.prod(self.sizes)

    @property
    def num_hosts(self) -> int:
        """Processes that hold them."""
        return self.num_devices // self.devices_per_host

    @property
    def label(self) -> str:
        """The mesh as a flag has it, such as `data=2,fsdp=4`."""
        return ",".join(f"{axis}={size}" for axis, size in zip(self.axes, self.sizes, strict=True))

    def size(self, axes: Sequence[str]) -> int:
        """Returns the number of parts that some axes cut a dimension into."""
        return math.prod(self.sizes[self.axes.index(axis)] for axis in axes)

    def used(self, spec: Sequence[ShardingEntry]) -> frozenset[str]:
        """Returns the axes of more than one device that a partition names."""
        return frozenset(axis for entry in spec for axis in named(entry) if self.size([axis]) > 1)

    def shard(self, shape: Sequence[int], spec: Sequence[ShardingEntry]) -> tuple[int, ...]:
        """Returns the shape of what one device holds of an array with a partition."""
        parts = [self.size(named(entry)) for entry in spec] + [1] * (len(shape) - len(spec))
        return tuple(size // part for size, part in zip(shape, parts, strict=True))

    def coordinate(self, axes: Sequence[str]) -> np.ndarray:
        """Returns for each device which part it holds of a dimension that `axes` cut, from 0.

        The first axis counts most, as in `jax.sharding.PartitionSpec`. The result is int64, shape
        (devices,), in the order of the mesh: row-major over `sizes`.
        """
        import numpy as np

        device = np.arange(self.num_devices, dtype=np.int64)
        found = np.zeros(self.num_devices, dtype=np.int64)
        for axis in axes:
            index = self.axes.index(axis)
            stride = math.prod(self.sizes[index + 1 :])
            found = found * self.sizes[index] + device // stride % self.sizes[index]
        return found

    def writers(self, used: frozenset[str]) -> np.ndarray:
        """Returns how many devices of each host hold the first replica of a shard.

        Orbax has replica 0 write, which is the first device in mesh order among those with the
        same part: the one at the origin of every axis that cuts nothing, all but those `used`.
        The result has the shape (hosts,), in the order of the mesh.
        """
        first = self.coordinate([axis for axis in self.axes if axis not in used]) == 0
        writers: np.ndarray = first.reshape(self.num_hosts, self.devices_per_host).sum(axis=1)
        return writers

    @property
    def is_aligned(self) -> bool:
        """Whether the devices of each host are a box in the mesh, so that dimensions separate."""
        rest = self.devices_per_host
        for size in reversed(self.sizes):
            if rest % size == 0:
                rest //= size
            else:
                return size % rest == 0
        return rest == 1


def named(entry: ShardingEntry) -> tuple[str, ...]:
    """Returns the axes of one entry of a partition."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def read_mesh(text: str, devices_per_host: int | None, *, flag: str = "--mesh") -> PlanMesh:
    """Reads a mesh as a command line has it.

    Args:
        text: For example `fsdp=8` or `data=16,fsdp=16`.
        devices_per_host: Devices of one process; None for all, where these are at most eight.
        flag: What the user gave it as, for messages.

    Raises:
        UserError: It is not of that form, or its devices do not make whole hosts.
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        axis, _, size = (piece.strip() for piece in part.partition("="))
        if not axis or axis in sizes or not size.isdecimal() or int(size) < 1:
            message = f"expected a mesh such as data=16,fsdp=16, each axis once, got {text!r}"
            raise UserError(Problem(message, key=flag))
        sizes[axis] = int(size)
    return make_mesh(tuple(sizes), tuple(sizes.values()), devices_per_host, flag=flag)


def make_mesh(
    axes: Sequence[str], sizes: Sequence[int], devices_per_host: int | None, *, flag: str = "--mesh"
) -> PlanMesh:
    """Makes a mesh of given axes.

    Args:
        axes: Names, the slowest first.
        sizes: Devices along each of them.
        devices_per_host: Devices of one process; None for all, where these are at most eight.
        flag: What the user gave the mesh as, for messages.

    Raises:
        UserError: The devices are too many, or do not make whole hosts.
    """
    devices = math.prod(sizes)
    if devices > MOST_DEVICES:
        message = f"{devices} devices are more than the {MOST_DEVICES} that can be planned for"
        raise UserError(Problem(message, key=flag))
    if devices_per_host is None:
        if devices > _ONE_HOST:
            message = (
                f"{devices} devices do not say how many hosts there are: give the devices of one, "
                "such as --devices-per-host 4"
            )
            raise UserError(Problem(message, key=flag))
        devices_per_host = devices
    if devices_per_host < 1 or devices % devices_per_host:
        message = (
            f"{devices} devices do not make whole hosts of {devices_per_host}: give a number that "
            "divides them as --devices-per-host"
        )
        raise UserError(Problem(message, key=flag))
    return PlanMesh(tuple(axes), tuple(sizes), devices_per_host)
