"""Worker group: the workers that run one point together, one per host process, joined by JAX."""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from orbax_bench_core.execute.hosts import Host, Inbox, WorkerDied, WorkerHandle
from orbax_bench_core.measure import Sample
from orbax_bench_core.worker import EVENT, Done, Measured, Ready, Task, Unrecorded, WorkerSetup

_GRACE_S = 3.0
"""Once a host has failed, the others wait for it in vain: this long they may still end by
themselves, so that what they know of the failure is kept."""


@dataclasses.dataclass(frozen=True)
class HostFailed(Exception):
    """A host ended in a way that leaves no record of its own, and the group with it.

    Attributes:
        host: The host that failed first.
        kind: `WorkerDied` or `Timeout`.
        message: What is known of it.
        tail: The last lines that it printed.
    """

    host: int
    kind: str
    message: str
    tail: str


class WorkerGroup:
    """Workers with their devices up, and what they have warmed up for.

    Attributes:
        ready: What each host said when it was ready.
        warm_points: Ids of the points whose warm-ups they have made.
        measured: Samples of the task under way by host, in the order in which operations ended.
    """

    def __init__(
        self,
        host: Host,
        setups: Sequence[WorkerSetup],
        *,
        environment: Mapping[str, str],
        executable: str,
        logs: Sequence[Path],
        timeout_s: float,
    ) -> None:
        """Starts one worker per setup; `await_ready` waits for them.

        Args:
            host: What starts them.
            setups: How each worker is set up.
            environment: Their environment.
            executable: The Python that runs them.
            logs: Where each one's output goes.
            timeout_s: Seconds that they may take to become ready.
        """
        self._inbox: Inbox = queue.SimpleQueue()
        self._timeout_s = timeout_s
        self._workers: list[WorkerHandle] = []
        self._num_hosts = len(setups)
        self.warm_points: set[str] = set()
        self.measured: dict[int, list[Sample]] = {}
        self.ready: dict[int, Ready] = {}
        self._workers = list(
            host.launch(
                setups,
                environment=environment,
                executable=executable,
                logs=logs,
                inbox=self._inbox,
            )
        )

    def await_ready(self) -> None:
        """Waits until all are ready.

        Raises:
            HostFailed: One of them did not become ready; all have been ended.
        """
        try:
            self.ready = self._await_ready(self._timeout_s)
        except BaseException:
            self.stop()
            raise

    def perform(self, tasks: Sequence[Task], timeout_s: float) -> dict[int, Done]:
        """Has one repeat done, each host its own task.

        Args:
            tasks: One task per host.
            timeout_s: Seconds that the repeat may take.

        Returns:
            How each host ended that ended by itself. A host is missing when another failed and
            it did not notice in time.

        Raises:
            HostFailed: A host died, or none failed and not all ended in time.
            CannotRecord: A record could not be written.
        """
        self.measured = {host: [] for host in range(self._num_hosts)}
        ended: dict[int, Done] = {}
        deadline = time.monotonic() + timeout_s
        for worker, task in zip(self._workers, tasks, strict=True):
            with contextlib.suppress(WorkerDied):  # its last line, which is empty, tells of it
                worker.send(task.model_dump_json())
        while len(ended) < self._num_hosts:
            try:
                host, event = self._next(deadline)
            except queue.Empty:
                if any(done.status == "failed" for done in ended.values()):
                    return ended
                waiting = min(set(range(self._num_hosts)) - ended.keys())
                raise self._timeout(waiting, timeout_s) from None
            if isinstance(event, Measured):
                self.measured[host] += event.samples
            elif isinstance(event, Unrecorded):
                raise CannotRecord(event.reason)
            elif isinstance(event, Done):
                ended[host] = event
                if event.status == "failed":
                    deadline = min(deadline, time.monotonic() + _GRACE_S)
        return ended

    def dismiss(self) -> None:
        """Lets the workers end on their own."""
        for worker in self._workers:
            worker.dismiss()

    def stop(self) -> None:
        """Ends the workers; a second call does nothing."""
        self.dismiss()
        while self._workers:
            self._workers.pop().stop()

    def _await_ready(self, timeout_s: float) -> dict[int, Ready]:
        ready: dict[int, Ready] = {}
        deadline = time.monotonic() + timeout_s
        while len(ready) < self._num_hosts:
            try:
                host, event = self._next(deadline)
            except queue.Empty:
                late = min(set(range(self._num_hosts)) - ready.keys())
                raise self._timeout(late, timeout_s) from None
            assert isinstance(event, Ready)
            ready[host] = event
        return ready

    def _next(self, deadline: float) -> tuple[int, Ready | Measured | Done | Unrecorded]:
        host, line = self._inbox.get(timeout=max(0.0, deadline - time.monotonic()))
        if not line:
            death = self._workers[host].death()
            raise HostFailed(host, "WorkerDied", str(death), death.tail)
        return host, EVENT.validate_json(line)

    def _timeout(self, host: int, timeout_s: float) -> HostFailed:
        message = f"not done after timeout_s = {timeout_s:g} seconds"
        return HostFailed(host, "Timeout", message, self._workers[host].stacks())


class CannotRecord(Exception):
    """A result was measured and cannot be written: going on would lose more."""


def free_address() -> str:
    """Returns an address on this machine at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
