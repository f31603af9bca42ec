"""Collectors that behave as a test needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from orbax_bench_core.measure import collectors
from orbax_bench_core.measure.collectors import Collector, Reading


class Scripted:
    """Calls a function at the start and one at the end, and reads one value."""

    def __init__(self, on_start: Callable[[], object], on_stop: Callable[[], object]) -> None:
        self._on_start = on_start
        self._on_stop = on_stop

    def start(self) -> None:
        self._on_start()

    def stop(self) -> list[Reading]:
        self._on_stop()
        return [Reading("9_other/scripted", 1.0, "count")]


class Logged(logging.Handler):
    """What is logged while a test runs, at every level.

    Attributes:
        records: All of it, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def messages(self) -> list[str]:
        return [record.getMessage() for record in self.records]

    def text(self) -> str:
        return "\n".join(map(self.format, self.records))


PAUSE_S = 0.05


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Has the clock of blocks stand still but for calls of this, however busy the machine is."""
    passed_ns = 0

    def pause() -> None:
        nonlocal passed_ns
        passed_ns += round(PAUSE_S * 1e9)

    monkeypatch.setattr("orbax_bench_core.measure.metrics.perf_counter_ns", lambda: passed_ns)
    return pause


@pytest.fixture
def logged() -> Iterator[Logged]:
    root, handler = logging.getLogger(), Logged()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.setLevel(before)
    root.removeHandler(handler)


AddCollector = Callable[[str, Callable[[], Collector]], None]


@pytest.fixture
def add_collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[AddCollector]:
    """Adds a collector under a key, for the test."""

    def add(key: str, factory: Callable[[], Collector]) -> None:
        monkeypatch.setattr(collectors, "FACTORIES", {**collectors.FACTORIES, key: factory})
        monkeypatch.setattr(collectors, "KEYS", (*collectors.KEYS, key))
        collectors._known.cache_clear()

    yield add
    collectors._known.cache_clear()


@pytest.fixture
def add_scripted(add_collector: AddCollector) -> Callable[..., None]:
    """Adds a collector that calls `on_start` and `on_stop`."""

    def add(
        key: str,
        on_start: Callable[[], object] = lambda: None,
        on_stop: Callable[[], object] = lambda: None,
    ) -> None:
        add_collector(key, lambda: Scripted(on_start, on_stop))

    return add
