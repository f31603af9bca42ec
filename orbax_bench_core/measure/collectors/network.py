"""Collector `network`: bytes that crossed the network interfaces of the host."""

from __future__ import annotations

from typing import NamedTuple

from orbax_bench_core.measure.collectors import kernel_file
from orbax_bench_core.measure.collectors.base import Reading
from orbax_bench_core.measure.definition import Metric

_FILE = "/proc/self/net/dev"
_HEADER_LINES = 2
_LOOPBACK = b"lo"
_SENT_COLUMN = 8

RECEIVED = Metric(
    name="6_io/network_receive_bytes",
    unit="bytes",
    better="none",
    description=(
        "Bytes received by all interfaces but loopback, for the whole host (or container), not for "
        "this process alone; bridged traffic counts on every interface that it passes"
    ),
    collector="network",
)
SENT = Metric(
    name="6_io/network_transmit_bytes",
    unit="bytes",
    better="none",
    description="Bytes sent, counted as network_receive_bytes are",
    collector="network",
)
LOOPBACK = Metric(
    name="6_io/network_loopback_bytes",
    unit="bytes",
    better="none",
    description="Bytes that processes of this host (or container) sent each other over loopback",
    collector="network",
)
METRICS = (RECEIVED, SENT, LOOPBACK)


class _Counters(NamedTuple):
    received: int
    sent: int
    loopback: int


class Network:
    """Bytes over network interfaces, end less start; nothing where the kernel does not count."""

    def __init__(self) -> None:
        self._read = kernel_file.reader(_FILE)
        self._before = b""

    def start(self) -> None:
        """Reads the counters."""
        if self._read is not None:
            self._before = kernel_file.read_all(self._read)

    def stop(self) -> list[Reading]:
        """The bytes since `start`."""
        if self._read is None:
            return []
        text = kernel_file.read_all(self._read)
        before = _parse(self._before)
        after = before if text == self._before else _parse(text)
        return [
            Reading(metric.name, float(new - old), metric.unit)
            for metric, old, new in zip(METRICS, before, after, strict=True)
        ]


def _parse(text: bytes) -> _Counters:
    received = sent = loopback = 0
    for line in text.splitlines()[_HEADER_LINES:]:
        name, _, columns = line.partition(b":")
        numbers = columns.split()
        if name.strip() == _LOOPBACK:
            loopback += int(numbers[0])
        else:
            received += int(numbers[0])
            sent += int(numbers[_SENT_COLUMN])
    return _Counters(received, sent, loopback)
