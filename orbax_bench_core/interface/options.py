"""Options of a benchmark, each a value or, in a suite file, a list that is swept."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeVar, Union

_T = TypeVar("_T")
if TYPE_CHECKING:
    # An instance holds one value. The list form is only for suite files.
    Sweepable = Annotated[_T, "one value, or in a suite file a list of them"]
else:
    Sweepable = Union[_T, list[_T]]  # noqa: UP007 - an alias with a parameter


LATER: Final[Mapping[str, bool]] = {"later": True}
"""Metadata of a field that came after points of its benchmark had been measured: a point has it
only where the suite gives it, so that the ids of the others stay what they were."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class BenchmarkOptions:
    """Base of every benchmark's options. Subclass it as a frozen dataclass.

    Any field may be given a list in the suite file: the list is a sweep axis, and each sweep point
    gets an instance with one value per field. Declare such a field as `Sweepable[int]`, which type
    checkers read as `int`, or as `int | list[int]`.

        @dataclasses.dataclass(frozen=True, kw_only=True)
        class SaveOptions(BenchmarkOptions):
            use_ocdbt: Sweepable[bool] = True

    Attributes:
        enable_trace: Whether to capture a profiler trace of each operation, in an additional
            warm-up: what is measured is never traced, which would make it slower.
        trace_every_repeat: Whether a traced warm-up comes before every repeat rather than once.
    """

    enable_trace: Sweepable[bool] = False
    trace_every_repeat: Sweepable[bool] = False

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
