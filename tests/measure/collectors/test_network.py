"""Bytes over network interfaces."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from orbax_bench_core.measure.collectors import base, kernel_counters
from orbax_bench_core.measure.collectors.kernel_counters import Network

MIB = 2**20
HEADER = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
"""
LOOPBACK = "6_io/network_loopback_bytes"


def table(**bytes_of: tuple[int, int]) -> str:
    rows = [
        f"{name:>6}: {received} 9 9 9 9 9 9 9 {sent} 9 9 9 9 9 9 9\n"
        for name, (received, sent) in bytes_of.items()
    ]
    return HEADER + "".join(rows)


def collect(operation: Callable[[], object]) -> dict[str, float]:
    collector = Network()
    collector.start()
    operation()
    return {reading.metric: reading.value for reading in collector.stop()}


@pytest.fixture
def counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kernel's file, as a test writes it."""
    file = tmp_path / "dev"
    monkeypatch.setattr(kernel_counters, "_NET_FILE", str(file))
    return file


def test_defect_9_all_interfaces_but_loopback_are_summed(counters: Path) -> None:
    counters.write_text(table(lo=(5, 5), eth0=(100, 10), eth1=(1000, 20)))

    found = collect(lambda: counters.write_text(table(lo=(6, 6), eth0=(103, 15), eth1=(1004, 26))))

    assert found == {
        "6_io/network_receive_bytes": 7,
        "6_io/network_transmit_bytes": 11,
        LOOPBACK: 1,
    }


def test_a_number_that_fills_its_column_is_read(counters: Path) -> None:
    counters.write_text(table(eth0=(0, 0)))

    found = collect(lambda: counters.write_text(table(eth0=(1, 2)).replace("eth0: ", "eth0:")))

    assert found["6_io/network_receive_bytes"] == 1


def test_what_goes_over_loopback_is_counted() -> None:
    def send() -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname()) as sender,
            server.accept()[0] as receiver,
        ):
            thread = threading.Thread(target=sender.sendall, args=(bytes(MIB),))
            thread.start()
            left = MIB
            while left:
                left -= len(receiver.recv(left))
            thread.join()

    if base.reader("/proc/self/net/dev") is None:
        pytest.skip("the kernel does not count")

    assert collect(send)[LOOPBACK] >= MIB


def test_a_kernel_that_does_not_count_gives_nothing(counters: Path) -> None:
    assert not counters.exists()

    assert collect(lambda: None) == {}
