"""Protocols of a host and of the workers that it starts."""

from __future__ import annotations

import contextlib
import dataclasses
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.execute.liveness import Signs
from orbax_bench_core.worker import WorkerSetup

Unmade = dict[str, dict[int, str]]
"""Environments that could not be made: why, by name and then by host."""

Inbox = queue.SimpleQueue[tuple[int, bytes]]
"""Lines of a group of workers, each with the index of its worker; an empty one is its end."""


class WorkerDied(Exception):
    """The worker process has ended before it answered.

    Attributes:
        tail: The last lines that it printed.
    """

    def __init__(self, message: str, tail: str) -> None:
        super().__init__(message)
        self.tail = tail


class HostLost(WorkerDied):
    """There is no contact any more with the host on which the worker runs; it may still run."""


class HostsMissing(Exception):
    """Hosts that a run needs have been lost and did not come back, so that it cannot go on."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Output:
    """Output of a process on a host, and its end.

    Attributes:
        host: Which host of the run.
        code: Its exit code, negative for a signal; None where it was not done in time.
        out: Its standard output.
        err: Its standard error, or why nothing is known of it.
    """

    host: int = 0
    code: int | None
    out: str = ""
    err: str = ""


class WorkerHandle(Protocol):
    """A worker that runs, as the orchestrator sees it; its own lines arrive in the inbox."""

    def send(self, line: str) -> None:
        """Hands one line to the worker."""

    def death(self) -> WorkerDied:
        """Returns what is known of the end of a worker that has ended."""
        ...

    def stacks(self) -> str:
        """Returns the stack of each of its threads, at the end of what it printed.

        Of a worker that is stopped, and cannot print, those in the kernel.
        """
        ...

    def signs(self) -> Signs:
        """Returns its signs, taken now from outside of its process; it need not answer."""
        ...

    def dismiss(self) -> None:
        """Lets the worker end once it is idle, without waiting for it."""

    def stop(self) -> None:
        """Ends the worker and all that it started, and waits until they are gone."""

    def kill(self) -> None:
        """Ends the worker and all that it started by SIGKILL, as a drill does."""


def stop_all(workers: Sequence[WorkerHandle]) -> None:
    """Ends workers, all at once: each may take seconds, and there may be dozens of hosts."""
    if workers:
        with ThreadPoolExecutor(len(workers), "stop") as threads:
            list(threads.map(lambda worker: worker.stop(), workers))


class Host(Protocol):
    """Starts the workers of a group."""

    def alone(self, say: Callable[[str], None]) -> contextlib.AbstractContextManager[None]:
        """Holds the measuring lock, so that nothing else of ours measures there meanwhile."""
        ...

    def machines(self) -> Sequence[str]:
        """Returns what tells the machine of each host from others, in all of its containers."""
        ...

    def run_module(
        self, module: str, argument: str, *, variables: Mapping[str, str], timeout_s: float
    ) -> Iterator[Output]:
        """Runs a module on each host, one after the other, as they share storage."""
        ...

    def provenance(self, worker: int) -> dict[str, Any]:
        """Returns what is known of the host of a worker that never became ready."""
        ...

    def free_address(self) -> str:
        """Returns an address at which the first worker of a group can coordinate the others."""
        ...

    def make_environments(
        self, configs: Sequence[EnvironmentConfig], *, folder: Path, say: Callable[[str], None]
    ) -> Unmade:
        """Makes the environments of a suite, for which `launch` is asked by name."""
        ...

    def launch(
        self,
        setups: Sequence[WorkerSetup],
        *,
        environment: Mapping[str, str],
        python: str,
        logs: Sequence[Path],
        inbox: Inbox,
    ) -> Sequence[WorkerHandle]:
        """Starts one worker per setup, and does not wait until they are ready."""
        ...
