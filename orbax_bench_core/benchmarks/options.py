"""What the options of several benchmarks have in common."""

from __future__ import annotations

import dataclasses

from orbax_bench_core.authoring import BenchmarkOptions
from orbax_bench_core.measure import default_metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasuringOptions(BenchmarkOptions):
    """Options of a benchmark that can also trace allocations.

    Attributes:
        metric_tracemalloc_enabled: Also trace Python allocations, which slows the operation down.
    """

    metric_tracemalloc_enabled: bool | list[bool] = False

    @property
    def collectors(self) -> list[str]:
        """The collectors that measure each operation."""
        return default_metrics() + ["tracemalloc"] * bool(self.metric_tracemalloc_enabled)


def check_least(options: BenchmarkOptions, **fewest: int) -> None:
    """Refuses numbers that leave nothing to measure.

    Args:
        options: The options; a list among them is a sweep axis, whose points are checked instead.
        **fewest: The smallest number that each option takes, by name.

    Raises:
        ValueError: A number is smaller.
    """
    for name, least in fewest.items():
        value = getattr(options, name)
        if not isinstance(value, list) and not (isinstance(value, int) and value >= least):
            raise ValueError(f"{name} must be {least} or more, got {value!r}")
