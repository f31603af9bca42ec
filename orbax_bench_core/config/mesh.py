"""The `mesh_config` block, and whether a mesh can hold the shardings of a spec."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Annotated, Final, Self

import pydantic

from orbax_bench_core.config.base import ConfigModel
from orbax_bench_core.config.checkpoint import CheckpointConfig
from orbax_bench_core.config.spec import ArraySpec, Spec, leaves

MAX_DEVICES: Final = 1_000_000
"""Devices of a mesh; no machine has as many."""

_Size = Annotated[int, pydantic.Field(gt=0, le=MAX_DEVICES)]


class MeshConfig(ConfigModel):
    """A device mesh, as the suite file describes it.

    Attributes:
        mesh_axes: Names of the mesh dimensions, outermost first.
        ici_parallelism: Size of each axis within a slice; an axis that is absent has size 1.
        dcn_parallelism: Size of each axis across slices; None for a single slice.
        allow_split_physical_axes: Whether one physical axis may serve several logical ones.
        process_is_granule: Whether a process, rather than a slice, is the unit across which
            `dcn_parallelism` counts.
        name: What people call it; no part of its identity.
    """

    mesh_axes: tuple[str, ...] = pydantic.Field(strict=False)
    ici_parallelism: dict[str, _Size] = {}
    dcn_parallelism: dict[str, _Size] | None = None
    allow_split_physical_axes: bool = False
    process_is_granule: bool = False
    name: Annotated[str, pydantic.Field(min_length=1)] | None = pydantic.Field(
        default=None, exclude_if=lambda value: value is None
    )

    @pydantic.field_validator("mesh_axes")
    @classmethod
    def _axes_are_distinct(cls, axes: tuple[str, ...]) -> tuple[str, ...]:
        if not axes:
            raise ValueError("a mesh has at least one axis")
        if len(set(axes)) != len(axes):
            raise ValueError(f"each axis may be named once, got {list(axes)}")
        return axes

    @pydantic.field_validator("ici_parallelism", "dcn_parallelism")
    @classmethod
    def _axes_are_known(
        cls, sizes: dict[str, int] | None, info: pydantic.ValidationInfo
    ) -> dict[str, int] | None:
        axes = info.data.get("mesh_axes", ())
        for axis, size in (sizes or {}).items():
            # An absent axis has size 1, so an unknown axis of size 1 changes nothing.
            if axes and axis not in axes and size != 1:
                raise ValueError(f"axis {axis!r} is not one of mesh_axes {list(axes)}")
        return sizes

    @pydantic.model_validator(mode="after")
    def _some_machine_has_it(self) -> Self:
        if self.num_devices > MAX_DEVICES:
            raise ValueError(
                f"a mesh of {self.num_devices:,} devices; one may have {MAX_DEVICES:,}"
            )
        return self

    @property
    def ici_shape(self) -> tuple[int, ...]:
        """Size of each axis within a slice, in the order of `mesh_axes`."""
        return tuple(self.ici_parallelism.get(axis, 1) for axis in self.mesh_axes)

    @property
    def dcn_shape(self) -> tuple[int, ...]:
        """Size of each axis across slices, in the order of `mesh_axes`."""
        sizes = self.dcn_parallelism or {}
        return tuple(sizes.get(axis, 1) for axis in self.mesh_axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Size of each axis over all devices, in the order of `mesh_axes`."""
        return tuple(i * d for i, d in zip(self.ici_shape, self.dcn_shape, strict=True))

    @property
    def num_devices(self) -> int:
        """Number of devices that the mesh needs, exactly."""
        return math.prod(self.shape)

    @property
    def label(self) -> str:
        """Its name, or a short one such as `data2fsdp4`; axes of size 1 are left out."""
        if self.name is not None:
            return self.name
        ici = _join(self.mesh_axes, self.ici_shape) or "1"
        dcn = _join(self.mesh_axes, self.dcn_shape)
        return f"dcn({dcn})·{ici}" if dcn else ici


def _join(axes: tuple[str, ...], sizes: tuple[int, ...]) -> str:
    return "".join(f"{axis}{size}" for axis, size in zip(axes, sizes, strict=True) if size > 1)


@dataclasses.dataclass(frozen=True, slots=True)
class ShardingConflict:
    """A leaf that a mesh cannot hold, by its path inside the spec: what was asked, and would do."""

    where: tuple[str, ...]
    message: str


def sharding_conflict(
    checkpoint: CheckpointConfig, mesh: MeshConfig | None
) -> ShardingConflict | None:
    """Returns the first leaf of `checkpoint.spec` that `mesh` cannot hold, or None."""
    return next(sharding_conflicts(checkpoint.spec or {}, mesh), None)


def sharding_conflicts(spec: Spec, mesh: MeshConfig | None) -> Iterator[ShardingConflict]:
    """Yields every leaf of a spec that `mesh` cannot hold; None stands for a run without one."""
    for where, leaf in leaves(spec):
        if isinstance(leaf, ArraySpec) and any(leaf.sharding or ()):
            message = _leaf_conflict(leaf, mesh)
            if message:
                yield ShardingConflict(where, message)


def _leaf_conflict(leaf: ArraySpec, mesh: MeshConfig | None) -> str | None:
    if mesh is None:
        return "`sharding` needs a mesh; add `mesh_config`"
    sizes = dict(zip(mesh.mesh_axes, mesh.shape, strict=True))
    used: set[str] = set()
    for dimension, entry in enumerate(leaf.sharding or ()):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        for axis in axes:
            if axis not in sizes:
                return f"sharding axis {axis!r} is not in mesh_axes {list(mesh.mesh_axes)}"
            if axis in used:
                return f"axis {axis!r} shards two dimensions; use it once"
            used.add(axis)
        parts = math.prod(sizes[axis] for axis in axes)
        if leaf.shape[dimension] % parts:
            return (
                f"dimension {dimension} has {leaf.shape[dimension]} elements, which mesh "
                f"{mesh.label} cannot split into {parts} equal parts; use a multiple of {parts}"
            )
    return None
