"""The TPU slices of Google Cloud, whose hosts are virtual machines.

Sources of the table: machine types and topologies in Google's XPK (`system_characteristics.py`)
and in GKE's guide to planning TPUs.
"""

import dataclasses
import difflib
import itertools
import math
import re
from collections.abc import Iterable, Iterator

from orbax_bench_core.config import Suite
from orbax_bench_core.errors import UserError

GKE_ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
GKE_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
GKE_RESOURCE = "google.com/tpu"
_SLICE_MACHINE = 4
"""Chips of the machines that slices of several hosts consist of."""
_FLAT = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_DEEP = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4")


@dataclasses.dataclass(frozen=True)
class Generation:
    """One TPU generation."""

    name: str  # as Google writes it, such as `v5e`
    aliases: tuple[str, ...]  # other names people know it by
    accelerator: str  # GKE's name, the value of the node selector
    machines: dict[int, str]  # machine types by their number of chips
    topologies: tuple[str, ...]  # the slices by name; those of several hosts included
    # what JAX calls such a device, in `jax/_src/pallas/mosaic/tpu_info.py`
    device_kinds: tuple[str, ...]
    # most chips of a three-dimensional slice beyond `topologies`, whose sides are multiples of 4 in
    # ascending order; 0 when there is none
    largest_cube: int = 0
    devices_per_chip: int = 1  # JAX devices
    # whether a Vertex AI custom job can ask for it by machine type and topology
    vertex: bool = True


GENERATIONS = (
    Generation(
        name="v4",
        aliases=("tpu-v4", "tpu-v4-podslice"),
        accelerator="tpu-v4-podslice",
        machines={4: "ct4p-hightpu-4t"},
        topologies=_DEEP,
        largest_cube=4096,
        device_kinds=("TPU v4",),
        vertex=False,
    ),
    Generation(
        name="v5e",
        aliases=("v5litepod", "v5lite", "v5-lite", "tpu-v5-lite-podslice"),
        accelerator="tpu-v5-lite-podslice",
        machines={1: "ct5lp-hightpu-1t", 4: "ct5lp-hightpu-4t", 8: "ct5lp-hightpu-8t"},
        topologies=_FLAT,
        device_kinds=("TPU v5 lite", "TPU v5e"),
    ),
    Generation(
        name="v5p",
        aliases=("tpu-v5p", "tpu-v5p-slice"),
        accelerator="tpu-v5p-slice",
        machines={4: "ct5p-hightpu-4t"},
        topologies=_DEEP,
        largest_cube=8960,
        device_kinds=("TPU v5", "TPU v5p"),
    ),
    Generation(
        name="v6e",
        aliases=("trillium", "tpu-v6e", "tpu-v6e-slice"),
        accelerator="tpu-v6e-slice",
        machines={1: "ct6e-standard-1t", 4: "ct6e-standard-4t", 8: "ct6e-standard-8t"},
        topologies=_FLAT,
        device_kinds=("TPU v6 lite", "TPU v6e"),
    ),
    Generation(
        name="v7x",
        aliases=("tpu7x", "ironwood", "v7"),
        accelerator="tpu7x",
        machines={1: "tpu7x-standard-1t", 4: "tpu7x-standard-4t"},
        topologies=("1x1x1", *_DEEP),
        largest_cube=9216,
        devices_per_chip=2,
        device_kinds=("TPU7x", "TPU v7"),
    ),
)


@dataclasses.dataclass(frozen=True)
class SliceShape:
    """One kind of slice."""

    generation: Generation
    topology: str
    chips_per_host: int

    def __str__(self) -> str:
        return f"{self.generation.name}:{self.topology}"

    @property
    def name(self) -> str:
        """Name that fits in a path and in a label, such as `v5e-2x4`."""
        return f"{self.generation.name}-{self.topology}"

    @property
    def chips(self) -> int:
        """Chips of the whole slice."""
        return _chips(self.topology)

    @property
    def devices(self) -> int:
        """JAX devices of the whole slice."""
        return self.chips * self.generation.devices_per_chip

    @property
    def hosts(self) -> int:
        """Virtual machines of the slice."""
        return self.chips // self.chips_per_host

    @property
    def machine_type(self) -> str:
        """Compute Engine's name of its machines."""
        return self.generation.machines[self.chips_per_host]

    @property
    def node_selectors(self) -> dict[str, str]:
        """The labels of the GKE nodes that form such slices."""
        return {GKE_ACCELERATOR: self.generation.accelerator, GKE_TOPOLOGY: self.topology}

    @property
    def vertex_machine_spec(self) -> dict[str, str]:
        """The `machineSpec` of a Vertex AI custom job; one replica of it is the whole slice."""
        if not self.generation.vertex:
            known = ", ".join(each.name for each in GENERATIONS if each.vertex)
            raise UserError(f"Vertex AI has no custom jobs on TPU {self}; it has {known}")
        return {"machineType": self.machine_type, "tpuTopology": self.topology}


def slice_shape(generation: str, topology: str, machine_type: str = "") -> SliceShape:
    """Returns a slice of the table.

    Args:
        generation: Name of the TPU, such as `v5e`.
        topology: Its chips along each axis, such as `2x4`.
        machine_type: Compute Engine's name of its machines; the largest ones without.

    Raises:
        UserError: There is no such slice, or none of these machines.
    """
    found = generation_named(generation, by_alias=False)
    if topology not in topologies(found):
        raise UserError(_no_such_topology(found, topology))
    sizes = _host_sizes(found, topology)
    if not machine_type:
        return SliceShape(found, topology, max(sizes))
    machines = {found.machines[size]: size for size in sizes}
    if machine_type in machines:
        return SliceShape(found, topology, machines[machine_type])
    known = " or ".join(machines)
    raise UserError(f"TPU {found.name} {topology} has machines {known}, not {machine_type!r}")


def parse_slice(text: str) -> SliceShape:
    """Reads a slice as the command line takes it: `v5e:2x4`, or with its machine type behind.

    Raises:
        UserError: It is not of the form, or there is no such slice; the message names the nearest.
    """
    parts = text.strip().split(":")
    if len(parts) not in (2, 3):
        raise UserError(f"a TPU slice is TYPE:TOPOLOGY, such as v5e:2x4; got {text!r}")
    return slice_shape(*parts)


def topologies(generation: Generation) -> Iterator[str]:
    """Yields every topology of a generation, in no particular order."""
    yield from generation.topologies
    sides = range(4, generation.largest_cube // 16 + 1, 4)
    for a in itertools.takewhile(lambda side: side**3 <= generation.largest_cube, sides):
        for b in range(a, generation.largest_cube // (a * a) + 1, 4):
            for c in range(b, generation.largest_cube // (a * b) + 1, 4):
                if (a, b, c) != (4, 4, 4):
                    yield f"{a}x{b}x{c}"


def generation_named(name: str, *, by_alias: bool = True) -> Generation:
    """Returns the generation that people call so, by its name or another one of it.

    Args:
        name: The name.
        by_alias: Whether other names that people know it by will do as well.

    Raises:
        UserError: There is none; the message names the nearest.
    """
    by_name = {known: each for each in GENERATIONS for known in (each.name, *each.aliases)}
    if name in by_name and (by_alias or by_name[name].name == name):
        return by_name[name]
    nearest = difflib.get_close_matches(name.lower(), by_name, n=1, cutoff=0.6)
    hint = f"did you mean {by_name[nearest[0]].name}? " if nearest else ""
    known = ", ".join(each.name for each in GENERATIONS)
    raise UserError(f"unknown TPU type {name!r}; {hint}Known: {known}")


def _chips(topology: str) -> int:
    return math.prod(map(int, topology.split("x")))


def _host_sizes(generation: Generation, topology: str) -> list[int]:
    """Returns the numbers of chips per machine that a topology can be made of."""
    chips = _chips(topology)
    return [
        size
        for size in generation.machines
        if size == chips or (size == _SLICE_MACHINE and chips > size)
    ]


def _no_such_topology(generation: Generation, topology: str) -> str:
    message = f"{generation.name} {topology} is not a topology;"
    if re.fullmatch(r"0*[1-9][0-9]*(x0*[1-9][0-9]*)*", topology):
        size = math.log(_chips(topology))
        nearest = min(topologies(generation), key=lambda one: abs(math.log(_chips(one)) - size))
        message += f" did you mean {nearest}?"
    rule = f" {generation.name} has {', '.join(generation.topologies)}"
    if generation.largest_cube:
        rule += (
            ", and larger ones whose sides are multiples of 4 in ascending order, such as 4x4x8, "
            f"up to {generation.largest_cube} chips"
        )
    return message + rule


def require_whole_slices(processes: Iterable[int], shape: SliceShape, slices: int = 1) -> None:
    """Checks that points use every host of the slices: libtpu waits for those that do not start.

    Args:
        processes: Numbers of processes that points name.
        shape: The kind of slice.
        slices: How many there are.

    Raises:
        UserError: A point has another number of processes than the slices have hosts.
    """
    hosts = shape.hosts * slices
    misfits = sorted({count for count in processes if count != hosts})
    if misfits:
        others = " and ".join(map(str, misfits))
        raise UserError(
            f"{slices} x TPU {shape} has {hosts} host{'s' if hosts > 1 else ''} of "
            f"{shape.chips_per_host} chips, and a point of execution.processes {others} does not "
            f"use all of them; a slice is only used whole: set {hosts}, or leave it out"
        )


def named_processes(suite: Suite) -> tuple[int, ...]:
    """Returns the numbers of processes that a suite or its arms name; what names none fits."""
    named = "processes" in suite.execution.model_fields_set
    arms = () if suite.arms is None else (suite.arms.baseline, suite.arms.candidate)
    of_arms = tuple(arm.processes for arm in arms if arm.processes is not None)
    return (*(suite.execution.processes if named else ()), *of_arms)
