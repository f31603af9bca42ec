"""Sweep points: all that is measured, and the id that hashes it."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final, Self

import pydantic

from orbax_bench_core import config
from orbax_bench_core.sweep.catalog import short_name

_ID_LENGTH = 12


_CHOSEN: Final = ("options", "storage", "environment")
_DRILLED: Final = "training_job"
_SUFFERED: Final = ("kill", "wiped", "peers_wait_s")
"""Options that say what happens to a job: nobody chooses among failures."""


class SweepPoint(config.ConfigModel):
    """One combination of benchmark, options, checkpoint, mesh, processes and conditions.

    Attributes:
        benchmark: Name of a built-in, or the import path of a benchmark class.
        id_name: What the id has in place of the import path; empty if the class says nothing.
        options: Every option with its value, defaults included, as plain data.
        given: The options that the suite file gives; the benchmark's own defaults fill the rest.
        checkpoint: What is saved and loaded.
        mesh: The device mesh; None without one.
        processes: Host processes that run it together.
        conditions: What is controlled while it is measured.
        storage: Where its checkpoints lie; None for the run directory.
        environment: The library versions that it runs with; None takes those of the command.
        candidate: Always None: the key of a `Pair` that tells its JSON from that of a point.
        label: What tells this point from the others of its suite, for people; not part of the id.
    """

    benchmark: str
    id_name: str = ""
    options: dict[str, Any]
    given: tuple[str, ...] = ()
    checkpoint: config.CheckpointConfig
    mesh: config.MeshConfig | None
    processes: pydantic.PositiveInt = 1
    conditions: config.Conditions = config.Conditions()
    storage: str | None = None
    environment: config.EnvironmentConfig | None = None
    candidate: None = None
    label: str = ""

    @pydantic.model_validator(mode="after")
    def _given_are_options(self) -> Self:
        for name in self.given:
            if name not in self.options:
                raise ValueError(f"`given` names {name!r}, which is no option of the point")
        return self

    @functools.cached_property
    def id(self) -> str:
        """First 12 hex digits of the SHA-256 over all that is measured."""
        return id_of(self.content)

    @property
    def content(self) -> dict[str, Any]:
        """All that is measured, as plain data.

        Mapping keys are sorted when it is hashed, except for the leaves of the spec, whose order is
        the order in which a checkpoint is written.
        """
        checkpoint = self.checkpoint.model_dump(mode="json", exclude={"name"})
        content: dict[str, Any] = {
            "benchmark": self.id_name or self.benchmark,
            "options": self.options,
            "checkpoint": {**checkpoint, "spec": json.dumps(checkpoint["spec"])},
            "mesh": None
            if self.mesh is None
            else self.mesh.model_dump(mode="json", exclude={"name"}),
            "processes": self.processes,
            "conditions": self.conditions.model_dump(mode="json"),
        }
        if self.storage is not None:
            content["storage"] = self.storage
        if self.environment is not None:
            content["environment"] = self.environment.identity
        return content

    def replace(self, **fields: Any) -> SweepPoint:
        """Returns a point that differs in `fields`; unlike a copy it has an id of its own."""
        own = {name: getattr(self, name) for name in SweepPoint.model_fields}
        return SweepPoint(**{**own, **fields})

    def with_label(self, label: str) -> SweepPoint:
        """Returns the point with another label."""
        return self.model_copy(update={"label": label})

    def with_presets_expanded(self) -> SweepPoint:
        """Returns the point with the tree of its model preset, laid out for its mesh."""
        if self.checkpoint.model is None:
            return self
        return self.replace(checkpoint=config.expanded(self.checkpoint, self.mesh))

    @property
    def name(self) -> str:
        """Name for people, such as `save_restore[use_ocdbt=true,mesh=fsdp8,ckpt=params]`."""
        return f"{short_name(self.benchmark)}[{self.label}]"

    @property
    def directory(self) -> str:
        """Name of the folder that holds the point's checkpoint data, unique in a run."""
        return f"{short_name(self.benchmark)}_{self.id}"

    @property
    def work(self) -> str:
        """What is done, as text: one can choose among points of equal work.

        They share benchmark, checkpoint, mesh, processes and conditions, and in drills what is
        killed. They may differ in other options, storage, environment and the memory of the host.
        """
        content = {name: value for name, value in self.content.items() if name not in _CHOSEN}
        conditions = {**content["conditions"], "host_memory": ""}
        drilled = short_name(self.benchmark) == _DRILLED
        suffered = {name: self.options.get(name) for name in _SUFFERED} if drilled else {}
        return json.dumps({**content, "conditions": conditions, **suffered}, sort_keys=True)

    @property
    def stores(self) -> list[str]:
        """The places in object stores that it names: its storage, its checkpoint, its options."""
        places = (self.storage, self.checkpoint.path, *self.options.values())
        return [each for each in places if isinstance(each, str) and each.startswith("gs://")]

    @property
    def num_devices(self) -> int | None:
        """Devices that the point's mesh needs; None when any number will do."""
        return None if self.mesh is None else self.mesh.num_devices

    @property
    def is_traced(self) -> bool:
        """Whether a trace is asked for; Orbax's own `safetensors_load` says `enable_xprof`."""
        return any(self.options.get(name) for name in ("enable_trace", "enable_xprof"))

    @property
    def given_options(self) -> dict[str, Any]:
        """The options that the suite file gives, as `BenchmarkOptions.from_dict` takes them."""
        return {name: self.options[name] for name in self.given}


def id_of(content: dict[str, Any]) -> str:
    """Returns the id of what is measured: the first 12 hex digits of its SHA-256."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]


_NOT_IDENTITY = {"label", "given"}


def differences(point: SweepPoint, other: SweepPoint) -> list[str]:
    """Returns each field in which two points differ, as `options.use_ocdbt: true, was false`.

    Fields that only one of the points has are shown as absent in the other; the order is that of
    `point`, then of what only `other` has.
    """
    these, those = _flat(point), _flat(other)
    return [
        f"{field}: {these.get(field, 'absent')}, was {those.get(field, 'absent')}"
        for field in dict.fromkeys([*these, *those])
        if these.get(field) != those.get(field)
    ]


def nearest(point: SweepPoint, others: Iterable[SweepPoint]) -> SweepPoint | None:
    """Returns the point of the same benchmark that differs in the fewest fields, or None."""
    candidates = [other for other in others if other.benchmark == point.benchmark]
    return min(candidates, key=lambda other: len(differences(point, other)), default=None)


def _flat(point: SweepPoint) -> dict[str, str]:
    found: dict[str, str] = {}
    _flatten(point.model_dump(mode="json", exclude=_NOT_IDENTITY), "", found)
    return found


def _flatten(value: Any, path: str, found: dict[str, str]) -> None:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            _flatten(inner, f"{path}.{key}" if path else key, found)
    else:
        found[path] = json.dumps(value)
