"""One combination of a sweep, and its identity."""

from __future__ import annotations

import functools
import hashlib
import json
from typing import Any, Self

import pydantic

from orbax_bench_core.config.checkpoint import CheckpointConfig
from orbax_bench_core.config.conditions import Conditions
from orbax_bench_core.config.mesh import MeshConfig
from orbax_bench_core.config.model import ConfigModel
from orbax_bench_core.sweep.catalog import short_name

_ID_LENGTH = 12


class SweepPoint(ConfigModel):
    """One combination of benchmark, options, checkpoint, mesh, processes and conditions.

    Attributes:
        benchmark: Import path of the benchmark class.
        options: Every option with its value, defaults included, as plain data.
        given: The options that the suite file gives; the benchmark's own defaults fill the rest.
        checkpoint: What is saved and loaded.
        mesh: The device mesh; None without one.
        processes: Host processes that run it together.
        conditions: What is controlled while it is measured.
        label: What tells this point from the others of its suite, for people; not part of the id.
    """

    benchmark: str
    options: dict[str, Any]
    given: tuple[str, ...] = ()
    checkpoint: CheckpointConfig
    mesh: MeshConfig | None
    processes: pydantic.PositiveInt = 1
    conditions: Conditions = Conditions()
    label: str = ""

    @functools.cached_property
    def id(self) -> str:
        """First 12 hex digits of the SHA-256 over all that is measured.

        The text that is hashed has sorted mapping keys, except for the leaves of the spec, whose
        order is the order in which a checkpoint is written.
        """
        content = {
            "benchmark": self.benchmark,
            "options": self.options,
            "checkpoint": {
                **self.checkpoint.model_dump(mode="json", exclude={"spec"}),
                "spec": json.dumps(self.checkpoint.model_dump(mode="json")["spec"]),
            },
            "mesh": None if self.mesh is None else self.mesh.model_dump(mode="json"),
            "processes": self.processes,
            "conditions": self.conditions.model_dump(mode="json"),
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]

    @property
    def name(self) -> str:
        """Name for people, such as `save_restore[use_ocdbt=true,mesh=fsdp8,ckpt=params]`."""
        return f"{short_name(self.benchmark)}[{self.label}]"

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
