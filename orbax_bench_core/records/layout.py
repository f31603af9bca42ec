"""Layout of samples: their columns but for the values, which the records of a sweep share."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

from orbax_bench_core.measure import Sample, block_name


class Layout:
    """Operation, occurrence, metric and unit of each sample of a record.

    Records with the same samples but for their values have the same object, so that what follows
    from it is found once.

    Attributes:
        operations: Operation of each sample.
        occurrences: Occurrence of each sample.
        metrics: Metric of each sample.
        units: Unit of each sample.
    """

    def __init__(self, key: Iterable[tuple[str, int, str, str]]) -> None:
        key = tuple(key)
        self.operations: tuple[str, ...] = tuple(operation for operation, _, _, _ in key)
        self.occurrences: tuple[int, ...] = tuple(occurrence for _, occurrence, _, _ in key)
        self.metrics: tuple[str, ...] = tuple(metric for _, _, metric, _ in key)
        self.units: tuple[str, ...] = tuple(unit for _, _, _, unit in key)
        self._places: dict[str, tuple[int, ...]] = {}

    @functools.cached_property
    def blocks(self) -> tuple[str, ...]:
        """Name of the block of each sample, with its `[occurrence]` from the second on."""
        return tuple(map(block_name, self.operations, self.occurrences))

    @functools.cached_property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Block and metric of each sample."""
        return tuple(zip(self.blocks, self.metrics, strict=True))

    def places(self, metric: str) -> tuple[int, ...]:
        """Returns which samples are of a metric."""
        if metric not in self._places:
            found = (place for place, name in enumerate(self.metrics) if name == metric)
            self._places[metric] = tuple(found)
        return self._places[metric]


class Columns(NamedTuple):
    """Samples of a record by column.

    Attributes:
        layout: All but their values.
        values: Their values.
    """

    layout: Layout
    values: list[float]


class Samples(Sequence[Sample]):
    """Samples of a record that was read, each made when it is asked for: most never are.

    Attributes:
        columns: They by column.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns.values)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._made)

    @overload
    def __getitem__(self, place: int) -> Sample: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Sample, ...]: ...
    def __getitem__(self, place: int | slice) -> Sample | tuple[Sample, ...]:
        return self._made[place]

    def __eq__(self, other: object) -> bool:
        return self._made == (tuple(other) if isinstance(other, Samples) else other)

    def __hash__(self) -> int:
        return hash(self._made)

    def __repr__(self) -> str:
        return repr(self._made)

    @functools.cached_property
    def _made(self) -> tuple[Sample, ...]:
        layout, values = self.columns
        parts = (layout.operations, layout.occurrences, layout.metrics, values, layout.units)
        return tuple(map(Sample, *parts))


def columns_of(samples: Sequence[Sample]) -> Columns:
    """Returns samples by column."""
    if isinstance(samples, Samples):
        return samples.columns
    key = tuple([(s.operation, s.occurrence, s.metric, s.unit) for s in samples])
    return Columns(layout_of(key), [sample.value for sample in samples])


@functools.lru_cache(maxsize=1024)
def layout_of(key: tuple[tuple[str, int, str, str], ...]) -> Layout:
    """Returns the layout of samples, given operation, occurrence, metric and unit of each."""
    return Layout(key)
