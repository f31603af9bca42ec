"""The TPU generations that Google Cloud has, as data.

Sources: the tables of machine types and topologies in Google's XPK (`system_characteristics.py`)
and in GKE's guide to planning TPUs.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Generation:
    """One TPU generation.

    Attributes:
        name: As Google writes it, such as `v5e`.
        aliases: Other names people know it by.
        accelerator: GKE's name, the value of the node selector.
        machines: Machine types by their number of chips.
        slice_machine: Chips of the machines that slices of several hosts consist of.
        topologies: The slices by name; those of several hosts included.
        largest_cube: Most chips of a three-dimensional slice beyond `topologies`, whose sides are
            multiples of 4 in ascending order; 0 when there is none.
        cores_per_chip: TensorCores, which names such as `v5p-8` count.
        devices_per_chip: JAX devices.
        vertex: Whether a Vertex AI custom job can ask for it by machine type and topology.
    """

    name: str
    aliases: tuple[str, ...]
    accelerator: str
    machines: dict[int, str]
    slice_machine: int
    topologies: tuple[str, ...]
    largest_cube: int
    cores_per_chip: int
    devices_per_chip: int
    vertex: bool


_FLAT = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_DEEP = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4")

GENERATIONS = (
    Generation(
        name="v4",
        aliases=("tpu-v4", "tpu-v4-podslice"),
        accelerator="tpu-v4-podslice",
        machines={4: "ct4p-hightpu-4t"},
        slice_machine=4,
        topologies=_DEEP,
        largest_cube=4096,
        cores_per_chip=2,
        devices_per_chip=1,
        vertex=False,
    ),
    Generation(
        name="v5e",
        aliases=("v5litepod", "v5lite", "v5-lite", "tpu-v5-lite-podslice"),
        accelerator="tpu-v5-lite-podslice",
        machines={1: "ct5lp-hightpu-1t", 4: "ct5lp-hightpu-4t", 8: "ct5lp-hightpu-8t"},
        slice_machine=4,
        topologies=_FLAT,
        largest_cube=0,
        cores_per_chip=1,
        devices_per_chip=1,
        vertex=True,
    ),
    Generation(
        name="v5p",
        aliases=("tpu-v5p", "tpu-v5p-slice"),
        accelerator="tpu-v5p-slice",
        machines={4: "ct5p-hightpu-4t"},
        slice_machine=4,
        topologies=_DEEP,
        largest_cube=8960,
        cores_per_chip=2,
        devices_per_chip=1,
        vertex=True,
    ),
    Generation(
        name="v6e",
        aliases=("trillium", "tpu-v6e", "tpu-v6e-slice"),
        accelerator="tpu-v6e-slice",
        machines={1: "ct6e-standard-1t", 4: "ct6e-standard-4t", 8: "ct6e-standard-8t"},
        slice_machine=4,
        topologies=_FLAT,
        largest_cube=0,
        cores_per_chip=1,
        devices_per_chip=1,
        vertex=True,
    ),
    Generation(
        name="v7x",
        aliases=("tpu7x", "ironwood", "v7"),
        accelerator="tpu7x",
        machines={1: "tpu7x-standard-1t", 4: "tpu7x-standard-4t"},
        slice_machine=4,
        topologies=("1x1x1", *_DEEP),
        largest_cube=9216,
        cores_per_chip=2,
        devices_per_chip=2,
        vertex=True,
    ),
)
