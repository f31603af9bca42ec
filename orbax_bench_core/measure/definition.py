"""Definition of a metric, and of a family of metrics whose names only a run can know."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import pydantic

Better = Literal["lower", "higher", "none"]
Aggregate = Literal["sum", "last"]

TIME: Final = "0_basics/time_s"
CPU: Final = "0_basics/cpu_s"
OF_CPU: Final = ":cpu"
"""Behind the name of an operation it means its CPU time, as in `save:cpu`."""
BYTES: Final = "5_inventory/operation_bytes"
PAGE_FAULTS: Final = "7_memory/minor_faults_count"
TOLERATED_SHARE: Final = 0.05
"""Share of a checkpoint that may be resident in a cold load, or missing from a warm one: metadata
that the benchmark itself has to read is a part of every checkpoint."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One registered metric.

    Attributes:
        name: `<namespace>/<name>`, for example `0_basics/time_s`.
        unit: Unit of its values, for example `s` or `GiB/s`; empty when it has none.
        better: Which direction is an improvement; `none` when neither is.
        description: What it says, for people.
        collector: Key of the collector that emits it.
        event: The `jax.monitoring` event it comes from, where it does.
        aggregate: How the readings of an event that fires several times within one block become
            one value: `sum` for durations, sizes and counts, `last` for rates, ratios and states.
            None when a block gives one reading by construction.
    """

    name: str
    unit: str
    better: Better
    description: str
    collector: str
    event: str | None = None
    aggregate: Aggregate | None = None

    @property
    def namespace(self) -> str:
        """The part of the name before the slash, for example `0_basics`."""
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Metrics that share a pattern, because only a run can know their names.

    Attributes:
        pattern: Their name, with the part that varies in angle brackets.
        units: What unit they have, for people.
        description: What they say, for people.
        collector: Key of the collector that emits them.
        example: A name of the family, which `registry.lookup` resolves.
    """

    pattern: str
    units: str
    description: str
    collector: str
    example: str


RESIDENT_SHARE = Metric(
    name="6_io/resident_share_before",
    unit="ratio",
    better="none",
    description=(
        "Share of the checkpoint's pages that were in the page cache when the load began, by "
        "mincore; 1 is warm, 0 is cold"
    ),
    collector="conditions",
)
METRICS = (RESIDENT_SHARE,)


MOST_OCCURRENCES: Final = 10_000_000


# Frozen, each would take four times as long to make, which every value of every block would pay.
@dataclass(slots=True, unsafe_hash=True)
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
