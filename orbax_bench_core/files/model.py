"""Base of the models that are kept on disk as JSON."""

from __future__ import annotations

import pydantic


class ResultModel(pydantic.BaseModel):
    """A block of a file. Values that JSON lacks (NaN, infinities) are kept as words."""

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, ser_json_inf_nan="strings", arbitrary_types_allowed=True
    )
