"""The knobs of a benchmark."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self


@dataclasses.dataclass(frozen=True, kw_only=True)
class BenchmarkOptions:
    """Base of every benchmark's options. Subclass it as a frozen dataclass.

    Any field may be given a list in the suite file: the list is a sweep axis, and each sweep point
    gets an instance with one value per field.

    Attributes:
        enable_trace: Whether to capture a profiler trace of each measured operation.
        trace_every_repeat: Whether every repeat is traced rather than the first only.
    """

    enable_trace: bool | list[bool] = False
    trace_every_repeat: bool | list[bool] = False

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Builds options from one combination of plain values; override to build nested ones.

        Args:
            values: One value per field that the suite file gives.

        Raises:
            TypeError: A key is not a field.
        """
        return cls(**values)

    def is_valid(self) -> bool:
        """Says whether this combination makes sense; invalid ones are dropped from the sweep."""
        return True
