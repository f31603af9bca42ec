"""Processes of one machine, which stand for hosts."""

from __future__ import annotations

import contextlib
import functools
import shlex
import socket
import subprocess

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.launchers.launch import Launch
from orbax_bench_core.launchers.running import (
    GRACE_S,
    echoed,
    ended,
    environment_of_hosts,
    named_host,
    started,
)

_HEAD = "ORBAX_BENCH_HEAD"
_HOST = "ORBAX_BENCH_HOST"
_NUM_HOSTS = "ORBAX_BENCH_NUM_HOSTS"
_LOOPBACK = "127.0.0.1"


class ProcessesSettings(ConfigModel):
    """Settings of processes on one machine: there are none."""


class Processes:
    """Starts the command once for each host, here.

    They share the machine, so times say nothing of a network: this tries a suite and a cluster's
    behaviour out before hosts are paid for.
    """

    def __init__(self, launch: Launch, settings: ProcessesSettings) -> None:
        """Keeps what is to be started."""
        del settings
        self._launch = launch

    def shown(self) -> str:
        """Returns the command line of each host."""
        hosts = range(self._launch.hosts)
        lines = (self._line(host, f"{_LOOPBACK}:PORT") for host in hosts)
        return "\n".join(("# all in one environment, with a token of their own", *lines))

    def start(self) -> int:
        """Starts all, passes on what they print, and waits for them."""
        head = f"{_LOOPBACK}:{_free_port()}"
        base, hosts = environment_of_hosts(), range(self._launch.hosts)
        processes = [started(self._launch.here, base | self._place(host, head)) for host in hosts]
        with ended(processes):
            echoes = [
                echoed(process, functools.partial(named_host, host))
                for host, process in enumerate(processes)
            ]
            codes = [processes[0].wait()]
            for process in processes[1:]:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE_S)
                codes.append(process.poll() or 0)
        for each in echoes:
            each.join()
        return next((code for code in codes if code), 0)

    def _place(self, host: int, head: str) -> dict[str, str]:
        return {_HEAD: head, _HOST: str(host), _NUM_HOSTS: str(self._launch.hosts)}

    def _line(self, host: int, head: str) -> str:
        place = " ".join(
            f"{key}={shlex.quote(value)}" for key, value in self._place(host, head).items()
        )
        return f"{place} {self._launch.line}"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((_LOOPBACK, 0))
        return int(free.getsockname()[1])
