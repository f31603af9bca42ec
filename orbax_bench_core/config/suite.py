"""The suite file as a whole."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final, Literal

import pydantic

from orbax_bench_core.config.base import ConfigModel
from orbax_bench_core.config.checkpoint import CheckpointConfig
from orbax_bench_core.config.execution import (
    MAX_REPEATS,
    EnvironmentConfig,
    ExecutionConfig,
    checked_requirement,
)
from orbax_bench_core.config.gate import GateConfig
from orbax_bench_core.config.mesh import MeshConfig
from orbax_bench_core.files import checked_path

MAX_NAME: Final = 1_000
"""Characters of the name of a suite, which stands in every record."""


class BenchmarkEntry(ConfigModel):
    """One item of `benchmarks`.

    Attributes:
        generator: A built-in name, or the import path of a `BenchmarksGenerator`.
        options: Values for the generator's options; a list is a sweep axis.
    """

    generator: str
    options: dict[str, Any]


class Suite(ConfigModel):
    """One suite file, checked.

    Attributes:
        suite_name: Human-readable name.
        benchmarks: What to run.
        num_repeats: Measured repeats of each sweep point.
        checkpoint_configs: What to save and load; swept.
        mesh_configs: Device meshes; swept. None runs without a mesh.
        baseline_capture_path: Directory to capture a baseline into.
        baseline_path: Stored baseline to compare with.
        execution: How repeats are run.
        storage: Where checkpoints lie; swept. Empty for the output directory.
        environments: Library versions to run with; swept, unless arms choose among them.
        arms: The two sides of a paired comparison; None without one.
        gate: When a difference between arms counts.
    """

    suite_name: str = pydantic.Field(min_length=1, max_length=MAX_NAME)
    benchmarks: tuple[BenchmarkEntry, ...] = pydantic.Field(strict=False)
    num_repeats: int = pydantic.Field(default=1, gt=0, le=MAX_REPEATS)
    checkpoint_configs: tuple[CheckpointConfig, ...] = pydantic.Field(
        default=(CheckpointConfig(),), strict=False
    )
    mesh_configs: tuple[MeshConfig, ...] | None = pydantic.Field(default=None, strict=False)
    baseline_capture_path: str | None = None
    baseline_path: str | None = None
    execution: ExecutionConfig = ExecutionConfig()
    storage: tuple[str, ...] = pydantic.Field(default=(), strict=False)
    environments: tuple[EnvironmentConfig, ...] = pydantic.Field(default=(), strict=False)
    arms: ArmsConfig | None = None
    gate: GateConfig = GateConfig()

    @pydantic.field_validator("benchmarks", "checkpoint_configs", "mesh_configs")
    @classmethod
    def _not_empty(cls, items: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if items is not None and not items:
            raise ValueError("an empty list leaves nothing to run; give at least one item")
        return items

    @pydantic.field_validator("storage")
    @classmethod
    def _usable(cls, storage: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(checked_path(path) for path in storage)

    @pydantic.field_validator("environments")
    @classmethod
    def _installable_under_distinct_names(
        cls, environments: tuple[EnvironmentConfig, ...]
    ) -> tuple[EnvironmentConfig, ...]:
        for environment in environments:
            for requirement in environment.requirements:
                checked_requirement(requirement, environment.name)
        names = [environment.name for environment in environments]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"each name may be used once, got {repeated} again")
        return environments

    def arm(self, name: Arm) -> ArmConfig:
        """Returns the values that differ in an arm; nothing in a suite without arms."""
        found: ArmConfig = getattr(self.arms or ArmsConfig(), name)
        return found

    def environment(self, name: str | None) -> EnvironmentConfig | None:
        """Returns the environment of that name; None for this command's own."""
        return next(
            (environment for environment in self.environments if environment.name == name), None
        )

    @property
    def identity(self) -> str:
        """SHA-256 over what is measured, in hex: all but baselines and how repeats are run."""
        # Two suites with one identity sweep the same points, so that one run directory can hold
        # both: asking for more repeats continues a run.
        measured = self.model_dump(
            mode="json", include={"suite_name", "benchmarks", "checkpoint_configs", "mesh_configs"}
        )
        for mesh in measured["mesh_configs"] or ():
            mesh.pop("name", None)
        for checkpoint in measured["checkpoint_configs"]:
            # The order of its leaves is the order in which a checkpoint is written.
            checkpoint["spec"] = json.dumps(checkpoint["spec"])
        measured["processes"] = self.execution.processes
        measured["conditions"] = [
            conditions.model_dump() for conditions in self.execution.conditions
        ]
        if self.storage:
            measured["storage"] = self.storage
        if self.environments:
            measured["environments"] = [
                {"name": environment.name, "identity": environment.identity}
                for environment in self.environments
            ]
        if self.arms is not None:
            measured["arms"] = self.arms.model_dump(mode="json", exclude={"aa"})
        text = json.dumps(measured, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


Arm = Literal["baseline", "candidate"]

ARMS: Final[tuple[Arm, Arm]] = ("baseline", "candidate")


class ArmConfig(ConfigModel):
    """Differences of one arm from the suite. Every key is optional.

    Attributes:
        options: Values of options, one each.
        environment: Name of an item of `environments`; None takes the environment that this
            command runs in.
        generator: Another benchmark in place of the suite's.
        processes: Host processes in place of the suite's.
        mesh_config: A mesh in place of the suite's.
        storage: Where its checkpoints lie, in place of the suite's.
    """

    options: dict[str, Any] = {}
    environment: str | None = None
    generator: str | None = None
    processes: pydantic.PositiveInt | None = None
    mesh_config: MeshConfig | None = None
    storage: str | None = None

    @pydantic.field_validator("storage")
    @classmethod
    def _usable(cls, storage: str | None) -> str | None:
        return None if storage is None else checked_path(storage)

    def __str__(self) -> str:
        """Returns the overrides for people, such as `use_ocdbt=false, environment=old`."""
        given = self.model_dump(mode="json", exclude_defaults=True)
        options = given.pop("options", {})
        generator = {"generator": given.pop("generator")} if "generator" in given else {}
        mesh = given.pop("mesh_config", None)
        if mesh is not None and self.mesh_config is not None:
            given["mesh"] = self.mesh_config.label
        parts = [
            f"{name}={value if isinstance(value, str) else json.dumps(value)}"
            for name, value in {**generator, **options, **given}.items()
        ]
        return ", ".join(parts) or "the suite as it is"


class ArmsConfig(ConfigModel):
    """Baseline and candidate; `arms: {}` compares the suite with itself.

    Attributes:
        baseline: What is compared with.
        candidate: What is judged.
        aa: Whether both sides are meant to be the same, which judges the machine and no change.
            Without it, sides that measure the same are refused, unless the block is empty.
    """

    baseline: ArmConfig = ArmConfig()
    candidate: ArmConfig = ArmConfig()
    aa: bool = False

    @property
    def may_be_same(self) -> bool:
        """Whether the suite asks for two sides that measure the same."""
        return self.aa or not self.model_fields_set
