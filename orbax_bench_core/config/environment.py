"""Environments: the library versions that a worker runs with."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Self

import pydantic

from orbax_bench_core.config.model import ConfigModel


class EnvironmentConfig(ConfigModel):
    """One item of `environments`: a virtual environment to make, or an interpreter that is there.

    Attributes:
        name: What arms and reports call it.
        requirements: What to install, as pip spells it: exact versions, a wheel, or a local path.
        interpreter: Path of an existing Python with everything installed.
    """

    name: Annotated[str, pydantic.Field(min_length=1, pattern=r"^[A-Za-z0-9][\w.+-]*$")]
    requirements: Annotated[tuple[str, ...], pydantic.Field(strict=False)] = ()
    interpreter: str | None = None

    @pydantic.model_validator(mode="after")
    def _one_kind(self) -> Self:
        if bool(self.requirements) == (self.interpreter is not None):
            raise ValueError("give either requirements or an interpreter")
        return self

    @property
    def identity(self) -> str:
        """SHA-256 over what it consists of, in hex; its name is not part of that."""
        content = {"requirements": list(self.requirements), "interpreter": self.interpreter}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
