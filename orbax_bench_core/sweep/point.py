"""One combination of a sweep, and its identity."""

from __future__ import annotations

import functools
import hashlib
import json
from typing import Any, Self

import pydantic

from orbax_bench_core.config import (
    Arm,
    CheckpointConfig,
    Conditions,
    ConfigModel,
    EnvironmentConfig,
    MeshConfig,
    expanded,
)
from orbax_bench_core.sweep.catalog import short_name

_ID_LENGTH = 12


class SweepPoint(ConfigModel):
    """One combination of benchmark, options, checkpoint, mesh, processes and conditions.

    A point of a paired comparison holds two: itself is the baseline, and `candidate` the other arm.

    Attributes:
        benchmark: Import path of the benchmark class.
        options: Every option with its value, defaults included, as plain data.
        given: The options that the suite file gives; the benchmark's own defaults fill the rest.
        checkpoint: What is saved and loaded.
        mesh: The device mesh; None without one.
        processes: Host processes that run it together.
        conditions: What is controlled while it is measured.
        storage: Where its checkpoints lie; None for the run directory.
        environment: The library versions that it runs with; None takes those of the command.
        candidate: The other arm of a paired comparison; None outside one.
        label: What tells this point from the others of its suite, for people; not part of the id.
    """

    benchmark: str
    options: dict[str, Any]
    given: tuple[str, ...] = ()
    checkpoint: CheckpointConfig
    mesh: MeshConfig | None
    processes: pydantic.PositiveInt = 1
    conditions: Conditions = Conditions()
    storage: str | None = None
    environment: EnvironmentConfig | None = None
    candidate: SweepPoint | None = None
    label: str = ""

    @functools.cached_property
    def id(self) -> str:
        """First 12 hex digits of the SHA-256 over all that is measured.

        The text that is hashed has sorted mapping keys, except for the leaves of the spec, whose
        order is the order in which a checkpoint is written.
        """
        content: dict[str, Any] = {
            "benchmark": self.benchmark,
            "options": self.options,
            "checkpoint": {
                **self.checkpoint.model_dump(mode="json", exclude={"spec", "name"}),
                "spec": json.dumps(self.checkpoint.model_dump(mode="json")["spec"]),
            },
            "mesh": None if self.mesh is None else self.mesh.model_dump(mode="json"),
            "processes": self.processes,
            "conditions": self.conditions.model_dump(mode="json"),
        }
        if self.storage is not None:
            content["storage"] = self.storage
        if self.environment is not None:
            content["environment"] = self.environment.identity
        if self.candidate is not None:
            content["candidate"] = self.candidate.id
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]

    def replace(self, **fields: Any) -> SweepPoint:
        """Returns a point that differs in `fields`; unlike a copy it has an id of its own."""
        own = {name: getattr(self, name) for name in SweepPoint.model_fields}
        return SweepPoint(**{**own, **fields})

    def with_presets_expanded(self) -> SweepPoint:
        """Returns the point with the trees of its model presets, laid out for its mesh."""
        candidate = self.candidate
        if all(one is None or one.checkpoint.model is None for one in (self, candidate)):
            return self
        return self.replace(
            checkpoint=expanded(self.checkpoint, self.mesh),
            candidate=None if candidate is None else candidate.with_presets_expanded(),
        )

    def side(self, arm: Arm | None) -> SweepPoint:
        """Returns the point that one arm of this one measures; the point itself without arms."""
        if arm is None or self.candidate is None:
            return self
        if arm == "baseline":
            return self.replace(candidate=None)
        return self.candidate

    @property
    def name(self) -> str:
        """Name for people, such as `save_restore[use_ocdbt=true,mesh=fsdp8,ckpt=params]`.

        A pair of two benchmarks has the names of both, the baseline's first.
        """
        arms = [self.benchmark, *([self.candidate.benchmark] if self.candidate else [])]
        return f"{' vs '.join(dict.fromkeys(map(short_name, arms)))}[{self.label}]"

    @property
    def directory(self) -> str:
        """Name of the folder that holds the point's checkpoint data, unique in a run."""
        return f"{short_name(self.benchmark)}_{self.id}"

    @property
    def num_devices(self) -> int | None:
        """Devices that the point's mesh needs; None when any number will do."""
        return None if self.mesh is None else self.mesh.num_devices

    def to_json(self) -> str:
        """Returns the point as one line of JSON, as it travels through a pipeline."""
        return self.model_dump_json()

    @property
    def given_options(self) -> dict[str, Any]:
        """The options that the suite file gives, as `BenchmarkOptions.from_dict` takes them."""
        return {name: self.options[name] for name in self.given}

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `to_json` wrote."""
        return cls.model_validate_json(text)
