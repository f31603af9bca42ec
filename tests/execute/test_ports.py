"""Ports of coordinators, from a range that a firewall lets through."""

import socket

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import LocalHost, PortRange


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9000", "'9000' is no range of ports; write it as 9000-9031"),
        ("9010-9000", "ports go from 1 to 65535, the smaller one first"),
        ("65530-65540", "ports go from 1 to 65535"),
        ("9000-9002", "'9000-9002' has 3 of the 4 ports that are needed"),
    ],
)
def test_a_range_that_cannot_do_is_refused_with_numbers(text, message):
    with pytest.raises(UserError, match=message):
        PortRange.parse(text)


@pytest.fixture
def ports():
    """Four ports in a row of which nobody listens at any."""
    for first in range(20000, 30000, 4):
        found = PortRange.parse(f"{first}-{first + 3}")
        try:
            taken = {found.take("127.0.0.1") for _ in range(4)}
        except UserError:
            continue
        if len(taken) == 4:
            return found
    raise AssertionError("no four ports are free")


def test_groups_that_start_at_once_get_ports_of_their_own_and_each_is_in_the_range(ports):
    host = LocalHost(ports=ports)
    addresses = [host.free_address() for _ in range(4)]
    expected = {f"127.0.0.1:{port}" for port in range(ports.first, ports.last + 1)}
    assert set(addresses) == expected


def test_a_range_that_is_all_taken_is_one_message_with_numbers(ports):
    listening = [
        socket.create_server(("127.0.0.1", port)) for port in range(ports.first, ports.last + 1)
    ]
    with pytest.raises(UserError, match=f"none of the 4 ports {ports.first}-{ports.last} of 127"):
        LocalHost(ports=ports).free_address()
    for server in listening:
        server.close()
