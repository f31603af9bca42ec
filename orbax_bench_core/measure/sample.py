"""Sample: one measured value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import pydantic

MOST_OCCURRENCES: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One value that one measured block gave.

    Attributes:
        operation: The name given to `Metrics.measure`.
        occurrence: 0 for the first block of that name in its `Metrics` object, in the order in
            which the blocks started; then 1, 2, ...
        metric: `<namespace>/<name>`, resolved by `registry.lookup`.
        value: The value, in `unit`.
        unit: Unit of the value, for example `s`; empty when it has none.
    """

    operation: str
    occurrence: Annotated[int, pydantic.Field(ge=0, le=MOST_OCCURRENCES)]
    metric: str
    value: float
    unit: str

    @property
    def key(self) -> str:
        """`<operation>_<metric>`, with the operation's `[occurrence]` from the second on."""
        return f"{block_name(self.operation, self.occurrence)}_{self.metric}"


def block_name(operation: str, occurrence: int) -> str:
    """What one block is called: `save`, and `save[1]`, `save[2]`, ... from the second on."""
    return f"{operation}[{occurrence}]" if occurrence else operation
