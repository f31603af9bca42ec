"""Base of the collectors: their interface, differences of two states, files of the kernel."""

import abc
import functools
import mmap
import os
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from orbax_bench_core.measure.definition import Metric

State = TypeVar("State")
Read = Callable[[int], bytes]

# The kernel gives at most a page per call where it lists things, and all at once where it does not.
_MOST = 16384
# A call gives all lines that fit into a page, so one that gives less than this has come to the end:
# lines are far shorter than the other half of a page (Documentation/filesystems/seq_file.rst).
# Another call, only to be told of the end, costs what the first one costs.
_LEAST_CUT = mmap.PAGESIZE // 2


class Reading(NamedTuple):
    """One value that a collector read.

    Attributes:
        metric: Name of the metric, which `known_metrics.lookup` resolves.
        value: The value, in `unit`.
        unit: Unit of the value.
    """

    metric: str
    value: float
    unit: str


class Collector(Protocol):
    """Watches one block.

    A new object serves each block. All of a block's collectors are constructed before the first of
    them starts, so a constructor is the place for imports and other costs that come once. `start`
    and `stop` run outside the clock; they may raise, which loses this collector's readings only.
    A collector that has more to say than numbers puts lines of text into an attribute `notes`.
    """

    def start(self) -> None:
        """Remembers the state before the operation."""

    def stop(self) -> Sequence[Reading]:
        """The readings of the operation that just ended."""
        ...


class Difference(abc.ABC, Generic[State]):
    """A collector that compares the state after the operation with the state before it."""

    _before: State | None = None

    def start(self) -> None:
        """Reads the state before the operation."""
        self._before = self._read()

    def stop(self) -> list[Reading]:
        """The readings of the operation that just ended; none where there is no state to read."""
        after = self._read()
        if after is None or self._before is None:
            return []
        return self._compare(self._before, after)

    @abc.abstractmethod
    def _read(self) -> State | None:
        """The state now; None if it cannot be read."""

    @abc.abstractmethod
    def _compare(self, before: State, after: State) -> list[Reading]:
        """The readings that two states give."""


class MetricGroup:
    """Metrics that are read together, in the order of the values that `readings` takes."""

    def __init__(self, *metrics: Metric) -> None:
        self.metrics = metrics
        self._rows = tuple((metric.name, metric.unit) for metric in metrics)

    def readings(self, *values: float) -> list[Reading]:
        """One reading per metric."""
        rows = zip(self._rows, values, strict=True)
        return [_new_reading((name, float(value), unit)) for (name, unit), value in rows]


# Three fifths of the cost of calling the class (143 against 245 ns), which every reading would pay.
_new_reading: Callable[[tuple[str, float, str]], Reading] = functools.partial(
    tuple.__new__, Reading
)


def reader(path: str) -> Read | None:
    """How to read a file of the kernel's again, at a tenth of the cost of opening it each time."""
    # It takes the offset at which to read; 0 makes the kernel count again. None when this process
    # cannot open the file.
    return _reader(path, os.getpid())


def read_all(read: Read) -> bytes:
    """The whole of a file that may be longer than a page."""
    text = chunk = read(0)
    while len(chunk) >= _LEAST_CUT:
        chunk = read(len(text))
        text += chunk
    return text


@functools.cache
def _reader(path: str, _pid: int) -> Read | None:
    # By pid: `/proc/self` stays what it was at opening, so a fork would go on reading its parent.
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    return functools.partial(os.pread, file, _MOST)
