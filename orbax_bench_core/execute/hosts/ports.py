"""Ports at which the first worker of a group coordinates the others."""

from __future__ import annotations

import re
import socket
import threading
from typing import Final

from orbax_bench_core.errors import UserError

MOST_GROUPS: Final = 4
"""Groups of workers that may be alive at once; each takes a port."""

_LAST = 65535


class PortRange:
    """Ports that a firewall lets through; each use takes the next one that is free."""

    def __init__(self, first: int, last: int) -> None:
        """Describes the ports from `first` to `last`, both included."""
        self.first = first
        self.last = last
        self._next = first
        self._guard = threading.Lock()

    @classmethod
    def parse(cls, text: str) -> PortRange:
        """Reads a range as people give it, such as `9000-9031`."""
        found = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", text)
        if found is None:
            raise UserError(f"--port-range: {text!r} is no range of ports; write it as 9000-9031")
        first, last = int(found[1]), int(found[2])
        if not 1 <= first <= last <= _LAST:
            raise UserError(
                f"--port-range: {text!r}: ports go from 1 to {_LAST}, the smaller one first"
            )
        if last - first + 1 < MOST_GROUPS:
            raise UserError(
                f"--port-range: {text!r} has {last - first + 1} of the {MOST_GROUPS} ports that "
                f"are needed: up to {MOST_GROUPS} groups of workers are alive at once, and each "
                "takes one"
            )
        return cls(first, last)

    def take(self, address: str) -> int:
        """Returns a port of an address at which nothing listens, another one than the last time."""
        with self._guard:
            for _ in range(self.first, self.last + 1):
                port = self._next
                self._next = self.first if port == self.last else port + 1
                if free_port(address, port):
                    return port
        raise UserError(
            f"none of the {self.last - self.first + 1} ports {self.first}-{self.last} of {address} "
            "is free: give another --port-range"
        )


def free_port(address: str, port: int = 0) -> int:
    """Returns a port of this machine at which nothing listens."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        # What a group that has ended leaves in the kernel is in nobody's way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            if not port:
                raise
            return 0
        return int(probe.getsockname()[1])
