"""Plan of a save and a load: shards, bytes, memory and time by tree and mesh."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

from orbax_bench_core.config import (
    CheckpointConfig,
    LoadedSuite,
    MeshConfig,
    Spec,
    SuiteSource,
    explain,
    load_suite,
)
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.files import read_at_most
from orbax_bench_core.inventory import read_checkpoint
from orbax_bench_core.limits import read
from orbax_bench_core.plan.layout import SaveLayout, predict
from orbax_bench_core.plan.meshes import PlanMesh, make_mesh, read_mesh
from orbax_bench_core.plan.options import StorageOptions, options_of
from orbax_bench_core.plan.reading import (
    MemoryBounds,
    ReadArray,
    ReadCost,
    Speeds,
    TimeBounds,
    foretold,
    memory_bounds,
    read_cost,
    time_bounds,
)
from orbax_bench_core.plan.trees import (
    PlannedTree,
    onto,
    saved_mesh,
    tree_of_config,
    tree_of_stored,
    unknown_axes,
)
from orbax_bench_core.records import RunDirectory, RunFile
from orbax_bench_core.sweep import SweepPoint, expand, sides

if TYPE_CHECKING:
    import pandas as pd

Mesh = str | Mapping[str, int] | MeshConfig | PlanMesh | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A save that was planned, and the load of it.

    Attributes:
        tree: What is saved.
        mesh: What it is saved from.
        options: How.
        layout: What lies on storage then.
        restore_mesh: What it is loaded onto.
        reading: What each host reads for that.
        memory: The most host memory of both.
        time: The fewest seconds of both.
        speeds: What these are from.
        failures: What will fail.
        notes: What else a reader should know.
    """

    tree: PlannedTree
    mesh: PlanMesh
    options: StorageOptions
    layout: SaveLayout
    restore_mesh: PlanMesh
    reading: ReadCost
    memory: MemoryBounds
    time: TimeBounds
    speeds: Speeds
    failures: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def elements(self) -> int:
        """Elements of all arrays, the first value of `orbax_save_count`."""
        return self.tree.elements

    @property
    def even_share(self) -> float:
        """Elements over devices, the second value of `orbax_save_count`."""
        return self.elements / self.mesh.num_devices

    @property
    def largest_share(self) -> int:
        """Elements that a device really holds; all devices hold equally many."""
        arrays = zip(self.tree.arrays, self.layout.arrays, strict=True)
        return sum(layout.shard_bytes // array.itemsize for array, layout in arrays)

    @property
    def device_bytes(self) -> int:
        """Bytes that a device holds of the tree."""
        return sum(array.shard_bytes for array in self.layout.arrays)

    @property
    def replicated_share(self) -> float:
        """Share of all device memory that holds another copy of what is elsewhere."""
        held = self.device_bytes * self.mesh.num_devices
        return 1 - self.tree.num_bytes / held if held else 0.0

    @property
    def stored_bytes(self) -> int | None:
        """Bytes of all values on storage; None with compression whose ratio is not known."""
        ratio = self.options.compression_ratio if self.options.use_compression else 1.0
        return None if ratio is None else round(self.tree.num_bytes * ratio)

    def arrays(self) -> pd.DataFrame:
        """Returns a row per array: shapes, chunks, replicas and bytes."""
        import pandas as pd

        rows = []
        for array in self.layout.arrays:
            row = {field.name: getattr(array, field.name) for field in dataclasses.fields(array)}
            rows.append({**row, "spec": str(list(array.spec))})
        return pd.DataFrame(rows)

    def hosts(self) -> pd.DataFrame:
        """Returns a row per host that saves, and with the same mesh for loading also what it reads.

        Columns: `written_bytes`; `needed_bytes`, `read_bytes_least` and `read_bytes_most` where as
        many hosts load.
        """
        import pandas as pd

        columns = {"written_bytes": self.layout.host_bytes}
        if self.restore_mesh.num_hosts == self.mesh.num_hosts:
            columns["needed_bytes"] = self.reading.need
            columns["read_bytes_least"] = self.reading.least
            columns["read_bytes_most"] = self.reading.most
        return pd.DataFrame(columns).rename_axis("host")

    def numbers(self) -> dict[str, Any]:
        """Returns all numbers, as JSON has them: `by_array` has a row per array."""
        arrays = self.arrays().to_dict(orient="records")
        return {**self.summary(), "options": self.options.label, "by_array": arrays}

    def summary(self) -> dict[str, Any]:
        """Returns all numbers that are no column, by name; sizes in bytes."""
        host = self.layout.host_bytes
        return {
            "tree": self.tree.label,
            "mesh": self.mesh.label,
            "hosts": self.mesh.num_hosts,
            "elements": self.elements,
            "even_share": self.even_share,
            "largest_share": self.largest_share,
            "arrays": len(self.tree.arrays),
            "array_bytes": self.tree.num_bytes,
            "device_bytes": self.device_bytes,
            "host_bytes_held": self.device_bytes * self.mesh.devices_per_host,
            "host_bytes_written_most": int(host.max()),
            "host_bytes_written_least": int(host.min()),
            "replicated_share": self.replicated_share,
            "stored_bytes": self.stored_bytes,
            "restore_mesh": self.restore_mesh.label,
            "read_amplification_least": self.reading.least_ratio,
            "read_amplification_most": self.reading.most_ratio,
            "save_memory_most": self.memory.save,
            "save_memory_most_accelerator": self.memory.save_accelerator,
            "load_memory_most": self.memory.load,
            "save_s_least": self.time.save_s,
            "load_s_least": self.time.load_s,
            "failures": list(self.failures),
            "notes": list(self.notes),
        }


def plan_checkpoint(
    source: CheckpointConfig | Spec | str,
    *,
    mesh: Mesh = None,
    devices_per_host: int | None = None,
    options: StorageOptions | None = None,
    restore_mesh: Mesh = None,
    restore_devices_per_host: int | None = None,
    speeds: Speeds | None = None,
    suite_file: str = "",
) -> Plan:
    """Plans a save of a tree from a mesh, and its load onto the same or another.

    Args:
        source: A `checkpoint_config`, a spec, or what `read_source` reads: a suite has plans of its
            own.
        mesh: Size of each axis, outermost first, as text (`data=16,fsdp=16`) or mapping; None for
            the mesh of a checkpoint, or one device.
        devices_per_host: Devices of one process; None for all, where these are at most eight.
        options: Storage options; None for Orbax's own.
        restore_mesh: What is loaded onto; None for `mesh`.
        restore_devices_per_host: Devices of one process there; None for `devices_per_host`, where
            these divide them.
        speeds: What the storage can do at best; None for unknown.
        suite_file: A factory's module may lie beside it.

    Raises:
        UserError: The source cannot be read, or the mesh cannot hold an array.
    """
    options, speeds = options or StorageOptions(), speeds or Speeds()
    config = _config_of(source)
    found = _mesh(mesh, devices_per_host, "--mesh")
    stored = None
    if config.path is not None:
        stored = read_checkpoint(config.path)
        found = found or saved_mesh(stored)
        tree = tree_of_stored(stored)
    else:
        tree = tree_of_config(config, found, suite_file=suite_file)
    found = found or make_mesh(("device",), (1,), 1)
    if devices_per_host is not None and devices_per_host != found.devices_per_host:
        found = make_mesh(found.axes, found.sizes, devices_per_host)
    target = _mesh(restore_mesh, restore_devices_per_host or devices_per_host, "--onto") or found
    return plan_tree(tree, found, options, target, speeds)


def plan_tree(
    tree: PlannedTree, mesh: PlanMesh, options: StorageOptions, target: PlanMesh, speeds: Speeds
) -> Plan:
    """Plans a save of a tree from `mesh`, and its load onto `target`.

    Args:
        tree: Arrays with shapes, dtypes and partitions; nothing is allocated.
        mesh: Devices that save.
        options: How Orbax stores the arrays.
        target: Devices that load.
        speeds: GiB/s of one host, without which times are unknown.

    Raises:
        UserError: An array cannot be split over a mesh, or the devices of a host are no box in it.
    """
    layout = predict(tree, mesh, options)
    chunks = {array.name: array.chunk_shape for array in layout.arrays} | tree.saved
    reading = read_cost(
        [
            ReadArray(
                array.name, array.shape, array.itemsize, chunks[array.name], onto(array, target)
            )
            for array in tree.arrays
        ],
        target,
    )
    return Plan(
        tree=tree,
        mesh=mesh,
        options=options,
        layout=layout,
        restore_mesh=target,
        reading=reading,
        memory=memory_bounds(layout, reading, options),
        time=time_bounds(layout, reading, options, speeds),
        speeds=speeds,
        failures=(
            *(f"this checkpoint cannot be loaded: {problem}" for problem in tree.problems),
            *foretold(layout, reading, options),
        ),
        notes=(
            *tree.notes,
            *(
                f"{place.label} has no axis {', '.join(missing)}: arrays are whole along it"
                for place in dict.fromkeys((mesh, target))
                if (missing := unknown_axes(tree.arrays, place))
            ),
        ),
    )


def read_source(source: str, overrides: tuple[str, ...] = ()) -> LoadedSuite | CheckpointConfig:
    """Reads what is to be planned, as a command line names it.

    Args:
        source: A suite file, a file with a spec or a `checkpoint_config`, a preset by its label
            (`llama-8b@0.1+adamw`), a Flax NNX factory (`module:factory`) or the path of a
            checkpoint.
        overrides: Values in place of those of a suite file, each `KEY.PATH=VALUE`.

    Raises:
        UserError: It cannot be read, or it is no suite and there are overrides.
    """
    data = _read(source) if source.endswith(_SUFFIXES) else None
    if data is not None and {"benchmarks", "suite_name"} & set(data):
        return load_suite(source, overrides)
    if overrides:
        raise UserError(f"--override changes a suite file, which {source!r} is not")
    if data is not None:
        inner = data.get("checkpoint_config", data)
        is_config = isinstance(inner, dict) and any(
            isinstance(inner.get(name), dict if name == "spec" else str) for name in _SOURCES
        )
        return _checked(inner if is_config else {"spec": inner}, file=source)
    if os.path.isdir(source):  # noqa: PTH112 - of a name too long, pathlib raises
        return _checked({"path": str(Path(source).resolve())}, key=source)
    if "/" in source:
        return _checked({"path": source}, key=source)
    return _checked({"nnx": source} if ":" in source else _preset(source), key=source)


def _config_of(source: CheckpointConfig | Spec | str) -> CheckpointConfig:
    if isinstance(source, CheckpointConfig):
        return source
    if not isinstance(source, str):
        return _checked({"spec": source})
    found = read_source(source)
    if isinstance(found, LoadedSuite):
        raise UserError(f"{source!r} is a suite, which has several plans: give it to `plan_suite`")
    return found


def _checked(fields: Mapping[str, Any], *, key: str = "", file: str = "") -> CheckpointConfig:
    """Returns a `checkpoint_config`; if it is none, a message names its key or file."""
    try:
        return CheckpointConfig(**fields)
    except pydantic.ValidationError as error:
        message = explain(error.errors()[0], CheckpointConfig.model_fields)
    except ValueError as error:  # a spec that cannot be read
        message = str(error)
    raise UserError(Problem(message, key=key[:80], file=file))


def _preset(label: str) -> dict[str, Any]:
    """Reads a preset as reports call it, such as `llama-8b@0.01+adamw+params:bfloat16`."""
    name, *parts = label.split("+")
    model, _, scale = name.partition("@")
    fields: dict[str, Any] = {"model": model}
    try:
        if scale:
            fields["scale"] = float(scale)
    except ValueError:
        raise UserError(
            f"{label!r}: expected a scale such as llama-8b@0.1, got {scale!r}"
        ) from None
    for part in parts:
        group, _, dtype = part.partition(":")
        if dtype:
            fields.setdefault("dtypes", {})[group] = dtype
        else:
            fields["optimizer"] = part
    return fields


def _mesh(mesh: Mesh, devices_per_host: int | None, flag: str) -> PlanMesh | None:
    if mesh is None or isinstance(mesh, PlanMesh):
        return mesh
    if isinstance(mesh, str):
        return read_mesh(mesh, devices_per_host, flag=flag)
    if isinstance(mesh, MeshConfig):
        return make_mesh(mesh.mesh_axes, mesh.shape, devices_per_host, flag=flag)
    return make_mesh(tuple(mesh), tuple(mesh.values()), devices_per_host, flag=flag)


def speeds_of_run(directory: str) -> Speeds:
    """Measures the best the storage of a run can do: `write_fsync` and `read_cold`.

    Raises:
        UserError: The run has no limits, or they cannot be read.
    """
    limits = read(RunDirectory(directory))
    if limits is None:
        raise UserError(
            f"{directory!r} has no {RunFile.LIMITS}: give the directory of a run without "
            "--no-limits, or --write-speed and --read-speed"
        )
    found = {probe.name: probe.gib_per_s for probe in limits.probes}
    source = f"measured in {directory}"
    return Speeds(found.get("write_fsync"), found.get("read_cold"), source, source)


_SOURCES = ("spec", "model", "nnx", "path")
_SUFFIXES = (".yaml", ".yml", ".json")


def plan_source(
    source: LoadedSuite | CheckpointConfig,
    *,
    changes: Mapping[str, Any] | None = None,
    suite_file: str = "",
    **places: Any,
) -> tuple[Plan, ...]:
    """Plans what `read_source` has read.

    Args:
        source: A suite, or the checkpoint.
        changes: Storage options; they take the place of those of a suite's points.
        suite_file: A factory's module may lie next to it; a suite has its own.
        **places: Further arguments of `plan_checkpoint`.

    Returns:
        One plan, or several where a suite sweeps over what decides shards and bytes.

    Raises:
        UserError: It cannot be read, or a mesh cannot hold an array.
    """
    if isinstance(source, LoadedSuite):
        return plan_suite(source, changes=changes, **places)
    options = StorageOptions(**(changes or {}))
    return (plan_checkpoint(source, options=options, suite_file=suite_file, **places),)


def plan_suite(
    loaded: LoadedSuite,
    *,
    mesh: Mesh = None,
    changes: Mapping[str, Any] | None = None,
    **places: Any,
) -> tuple[Plan, ...]:
    """Plans all that a suite saves, each distinct checkpoint, mesh and set of options once.

    Args:
        loaded: The suite.
        mesh: Takes the place of its meshes; None leaves them.
        changes: Storage options that take the place of those of its points.
        **places: Further arguments of `plan_checkpoint`.

    Raises:
        UserError: Nothing in it can be planned, or a mesh cannot hold an array.
    """
    expansion = expand(loaded)
    points = [point for entry in expansion.points for point in sides(entry).values()]
    found: dict[tuple[Any, ...], Plan] = {}
    saves: Iterable[tuple[CheckpointConfig, SweepPoint]]
    saves = ((point.checkpoint, point) for point in points)
    if mesh is not None:  # presets have other trees there
        saves = itertools.product(loaded.suite.checkpoint_configs, points)
    for checkpoint, point in saves:
        if checkpoint.is_empty:
            continue
        options = dataclasses.replace(options_of(point.options), **(changes or {}))
        place = mesh or point.mesh
        key = (checkpoint.model_dump_json(), repr(place), options)
        if key not in found:
            found[key] = plan_checkpoint(
                checkpoint, mesh=place, options=options, suite_file=loaded.source.file, **places
            )
    if not found:
        skipped = [skip.reason for skip in expansion.skipped]
        reason = skipped[0] if skipped else "its benchmarks make their own state"
        raise UserError(f"no point of this suite has a checkpoint to plan for: {reason}")
    return tuple(found.values())


def _read(file: str) -> dict[str, Any]:
    try:
        found = SuiteSource(read_at_most(file).decode(), file).data
    except FileNotFoundError:
        raise UserError(Problem("there is no such file", file=file)) from None
    except (OSError, ImportError, ValueError) as error:
        raise UserError(Problem(f"cannot be read: {error}", file=file)) from None
    if not isinstance(found, dict):
        message = f"a suite or a spec is a mapping, got {type(found).__name__}"
        raise UserError(Problem(message, file=file))
    return found
