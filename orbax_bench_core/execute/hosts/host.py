"""Protocols of a host and of the workers that it starts."""

from __future__ import annotations

import queue
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from orbax_bench_core.execute.liveness import Signs
from orbax_bench_core.worker import WorkerSetup

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


class WorkerHandle(Protocol):
    """A worker that runs, as the orchestrator sees it; its own lines arrive in the inbox."""

    def send(self, line: str) -> None:
        """Hands one line to the worker.

        Raises:
            WorkerDied: It has ended.
        """

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


def stop_all(workers: Sequence[WorkerHandle]) -> None:
    """Ends workers, all at once: each may take seconds, and there may be dozens of hosts."""
    if workers:
        with ThreadPoolExecutor(len(workers), "stop") as threads:
            list(threads.map(lambda worker: worker.stop(), workers))


class Host(Protocol):
    """Starts the workers of a group."""

    def free_address(self) -> str:
        """Returns an address at which the first worker of a group can coordinate the others.

        Raises:
            HostsMissing: The host of the first worker is lost.
        """
        ...

    def launch(
        self,
        setups: Sequence[WorkerSetup],
        *,
        environment: Mapping[str, str],
        executable: str,
        logs: Sequence[Path],
        inbox: Inbox,
    ) -> Sequence[WorkerHandle]:
        """Starts one worker per setup, and does not wait until they are ready.

        Args:
            setups: How each worker is set up.
            environment: Environment variables of all of them.
            executable: The Python that runs them.
            logs: Where each one's output is appended.
            inbox: Where their lines arrive, each under the `process_id` of its setup.

        Returns:
            The workers, in the same order. If one cannot be started, none is left running.

        Raises:
            HostsMissing: A host is lost.
        """
        ...
