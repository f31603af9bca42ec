"""Processes of one machine, which stand for hosts."""

import contextlib
import shlex
import socket
import subprocess
import threading
from collections.abc import Sequence

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.launchers.launch import (
    GRACE_S,
    Launch,
    echo,
    environment_of_hosts,
    place_variables,
)

_LOOPBACK = "127.0.0.1"


class ProcessesSettings(ConfigModel):
    """Settings of processes on one machine: there are none."""


class Processes:
    """Starts the command for each host here, to try a suite out: times say nothing of a network."""

    def __init__(self, launch: Launch, settings: ProcessesSettings) -> None:
        """Keeps what is to be started."""
        del settings
        self._launch = launch

    def shown(self) -> str:
        """Returns the command line of each host."""
        lines = ["# all in one environment, with a token of their own"]
        for variables in self._places(f"{_LOOPBACK}:PORT"):
            place = " ".join(f"{name}={text}" for name, text in variables.items())
            lines.append(f"{place} {shlex.join(self._launch.command)}")
        return "\n".join(lines)

    def start(self) -> int:
        """Starts all, passes on what they print, and waits for them.

        Once process 0 has ended the others have some seconds to do the same.

        Returns:
            The first exit code that is not 0; 0 if there is none.
        """
        with socket.socket() as free:
            free.bind((_LOOPBACK, 0))
            head = f"{_LOOPBACK}:{free.getsockname()[1]}"
        base = environment_of_hosts()
        processes = [
            subprocess.Popen(
                self._launch.here,
                env=base | place,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            for place in self._places(head)
        ]
        echoes = [
            threading.Thread(target=_echo, args=each, daemon=True) for each in enumerate(processes)
        ]
        try:
            for each in echoes:
                each.start()
            codes = [processes[0].wait()]
            for process in processes[1:]:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE_S)
                codes.append(process.poll() or 0)
        finally:
            _end([process for process in processes if process.poll() is None])
        for each in echoes:
            each.join()
        return next((code for code in codes if code), 0)

    def _places(self, head: str) -> list[dict[str, str]]:
        hosts = self._launch.hosts
        return [place_variables(head, host, hosts) for host in range(hosts)]


def _echo(host: int, process: subprocess.Popen[str]) -> None:
    """Prints what a host prints, until its end."""
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            echo(host, line)


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Ends what still runs, kindly at first."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
