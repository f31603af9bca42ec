"""Base model of the suite file's blocks."""

from __future__ import annotations

import pydantic


class ConfigModel(pydantic.BaseModel):
    """A block of the suite file.

    Unknown keys and wrong types are errors: a misspelt key that is silently ignored measures
    something else than what its author believes.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)
