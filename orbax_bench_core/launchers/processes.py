"""Processes of one machine, which stand for hosts."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.execute import TOKEN, without_cluster
from orbax_bench_core.launchers.launch import Launch

_HEAD = "ORBAX_BENCH_HEAD"
_HOST = "ORBAX_BENCH_HOST"
_NUM_HOSTS = "ORBAX_BENCH_NUM_HOSTS"
_LOOPBACK = "127.0.0.1"
_GRACE_S = 30.0
"""Seconds for which agents may end by themselves after process 0; they need 8 to miss it."""


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
        """Starts all, passes on what they print, and waits for them.

        Returns:
            The exit code of host 0, or of the first other one that failed.
        """
        head = f"{_LOOPBACK}:{_free_port()}"
        base = without_cluster(os.environ) | {TOKEN: secrets.token_hex(32)}
        hosts = range(self._launch.hosts)
        with _ended([self._process(base | self._place(host, head)) for host in hosts]) as started:
            echoes = [_echo(process, host) for host, process in enumerate(started)]
            codes = [started[0].wait()]
            for process in started[1:]:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_GRACE_S)
                codes.append(process.poll() or 0)
        for echo in echoes:
            echo.join()
        return next((code for code in codes if code), 0)

    def _process(self, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._launch.here,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def _place(self, host: int, head: str) -> dict[str, str]:
        return {_HEAD: head, _HOST: str(host), _NUM_HOSTS: str(self._launch.hosts)}

    def _line(self, host: int, head: str) -> str:
        place = " ".join(f"{key}={value}" for key, value in self._place(host, head).items())
        return f"{place} {self._launch.line}"


@contextlib.contextmanager
def _ended(
    processes: Sequence[subprocess.Popen[str]],
) -> Iterator[Sequence[subprocess.Popen[str]]]:
    """Ends what still runs at the end, kindly at first."""
    try:
        yield processes
    finally:
        alive = [process for process in processes if process.poll() is None]
        for process in alive:
            process.terminate()
        for process in alive:
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _echo(process: subprocess.Popen[str], host: int) -> threading.Thread:
    """Passes on what a host prints: that of host 0 as it is, that of others with their number."""
    assert process.stdout is not None
    prefix = f"host {host}: " if host else ""
    thread = threading.Thread(target=_copy, args=(process.stdout, prefix), daemon=True)
    thread.start()
    return thread


def _copy(lines: IO[str], prefix: str) -> None:
    for line in lines:
        sys.stdout.write(prefix + line)
        sys.stdout.flush()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((_LOOPBACK, 0))
        return int(free.getsockname()[1])
