"""Collectors that behave as a test needs."""

import logging

import pytest

from orbax_bench_core.measure import collectors
from orbax_bench_core.measure.collectors import Reading


class Scripted:
    """Calls a function at the start and one at the end, and reads one value."""

    def __init__(self, on_start, on_stop):
        self._on_start = on_start
        self._on_stop = on_stop

    def start(self):
        self._on_start()

    def stop(self):
        self._on_stop()
        return [Reading("9_other/scripted", 1.0, "count")]


class Logged(logging.Handler):
    """What is logged while a test runs, at every level.

    Attributes:
        records: All of it, in order.
    """

    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)

    def messages(self):
        return [record.getMessage() for record in self.records]

    def text(self):
        return "\n".join(map(self.format, self.records))


PAUSE_S = 0.05


@pytest.fixture
def pause(monkeypatch):
    """Has the clock of blocks stand still but for calls of this, however busy the machine is."""
    passed_ns = 0

    def pause():
        nonlocal passed_ns
        passed_ns += round(PAUSE_S * 1e9)

    for module in ("block", "metrics"):
        name = f"orbax_bench_core.measure.{module}.perf_counter_ns"
        monkeypatch.setattr(name, lambda: passed_ns)
    return pause


@pytest.fixture
def logged():
    root, handler = logging.getLogger(), Logged()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.setLevel(before)
    root.removeHandler(handler)


@pytest.fixture
def add_collector(monkeypatch):
    """Adds a collector under a key, for the test."""

    def add(key, factory):
        monkeypatch.setattr(collectors, "FACTORIES", {**collectors.FACTORIES, key: factory})
        monkeypatch.setattr(collectors, "KEYS", (*collectors.KEYS, key))
        collectors._check_keys.cache_clear()

    yield add
    collectors._check_keys.cache_clear()


@pytest.fixture
def add_scripted(add_collector):
    """Adds a collector that calls `on_start` and `on_stop`."""

    def add(key, on_start=lambda: None, on_stop=lambda: None):
        add_collector(key, lambda: Scripted(on_start, on_stop))

    return add
