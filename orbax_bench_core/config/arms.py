"""The `arms` block: the two sides of a paired comparison."""

from __future__ import annotations

import json
from typing import Any, Final, Literal

import pydantic

from orbax_bench_core.config.base import ConfigModel
from orbax_bench_core.config.mesh import MeshConfig
from orbax_bench_core.files import checked_path

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
    """Baseline and candidate; an empty block for each compares the suite with itself.

    Attributes:
        baseline: What is compared with.
        candidate: What is judged.
    """

    baseline: ArmConfig = ArmConfig()
    candidate: ArmConfig = ArmConfig()
