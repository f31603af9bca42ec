"""Hosts of a cluster: the same command in processes, told apart by variables.

They are on this machine, or each in a network namespace of a lab.
"""

import contextlib
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil

from tests.support.namespaces import Lab
from tests.support.processes import FAKE_CLI, free_address, plain_environment, start_cli, wait_until

WAIT_S = 90.0
_PORT = 8473


class Hosts:
    """Commands that were started as hosts of one cluster; leaving it ends what is left of them."""

    def __init__(
        self,
        folder: Path,
        *command: object,
        size: int = 2,
        cli: str = FAKE_CLI,
        lab: Lab | None = None,
    ) -> None:
        """Describes the cluster; `start` starts its hosts.

        Args:
            folder: Where their outputs go.
            command: The command that each of them runs.
            size: How many there are.
            cli: The module to run.
            lab: Where each is on a host of its own; None has all on this machine.
        """
        self.address = free_address() if lab is None else f"{lab.address(0)}:{_PORT}"
        self._lab = lab
        self.size = size
        self._folder = folder
        self._command = command
        self._cli = cli
        self._started: list[subprocess.Popen[str]] = []
        self._seen: set[psutil.Process] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._look()
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait()
        for process in self._seen:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def start(
        self,
        rank: int,
        own: Mapping[Path, Path] | None = None,
        *,
        folder: Path | None = None,
        **variables: str,
    ) -> subprocess.Popen[str]:
        """Starts one host; its output goes to `host_<rank>.txt`, after that of earlier ones.

        Args:
            rank: Which host.
            own: Folders in place of which a host of a lab sees others.
            folder: Where it is started; None for that of the tests.
            variables: Environment variables that are its own.
        """
        given = {
            "JAX_COORDINATOR_ADDRESS": self.address,
            "JAX_NUM_PROCESSES": str(self.size),
            "JAX_PROCESS_ID": str(rank),
            "COLUMNS": "200",
        }
        if self._lab is not None:  # hosts do not share what is temporary
            temporary = self._folder / f"tmp_{rank}"
            temporary.mkdir(exist_ok=True)
            given["TMPDIR"] = str(temporary)
        with (self._folder / f"host_{rank}.txt").open("a") as output:
            process = start_cli(
                *self._command,
                cli=self._cli,
                environment={**plain_environment(), **given, **variables},
                output=output,
                inside=() if self._lab is None else self._lab.inside(rank, own),
                folder=folder,
            )
        self._started.append(process)
        return process

    def start_all(self) -> list[subprocess.Popen[str]]:
        """Starts every host."""
        return [self.start(rank) for rank in range(self.size)]

    def said(self, rank: int) -> str:
        """Returns what the processes of one host have printed."""
        output = self._folder / f"host_{rank}.txt"
        return output.read_text() if output.exists() else ""

    def codes(
        self, processes: Sequence[subprocess.Popen[str]], within_s: float = WAIT_S
    ) -> list[int]:
        """Waits until commands have ended, and returns their exit codes."""
        self._look()
        return [process.wait(timeout=within_s) for process in processes]

    def wait_for(self, condition: Callable[[], object], within_s: float = WAIT_S) -> None:
        """Waits until something holds."""
        wait_until(condition, lambda: "\n".join(map(self.said, range(self.size))), within_s)
        self._look()

    def wait_until_said(self, rank: int, text: str) -> None:
        """Waits until a host has printed something."""
        self.wait_for(lambda: text in self.said(rank))

    def workers(self, process: subprocess.Popen[str]) -> list[psutil.Process]:
        """Returns the workers that a host has started."""
        with contextlib.suppress(psutil.NoSuchProcess):
            found = psutil.Process(process.pid).children(recursive=True)
            self._seen.update(found)
            return found
        return []

    def orphans(self, within_s: float = WAIT_S) -> list[psutil.Process]:
        """Returns the workers ever seen that still run after some seconds."""
        _, alive = psutil.wait_procs(self._seen, timeout=within_s)
        return [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]

    def _look(self) -> None:
        for process in self._started:
            self.workers(process)
