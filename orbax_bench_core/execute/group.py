"""Worker group: workers that run one point together."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from orbax_bench_core.execute.group_wait import GroupWait
from orbax_bench_core.execute.hosts import Host, Inbox, WorkerDied, WorkerHandle, stop_all
from orbax_bench_core.execute.liveness import PATIENCE, Patience
from orbax_bench_core.interface import Killed
from orbax_bench_core.measure import Sample
from orbax_bench_core.worker import Done, Ready, Task, WorkerSetup

Kill = Callable[[Sequence[WorkerHandle], Inbox, float], Killed | dict[int, Done]]
"""Kills a group that trains, and returns how it ended or, where it was not killed, who is done."""


class WorkerGroup:
    """Workers with their devices up, and what they have warmed up for."""

    def __init__(
        self,
        host: Host,
        setups: Sequence[WorkerSetup],
        *,
        environment: Mapping[str, str],
        python: str,
        logs: Sequence[Path],
        timeout_s: float,
        patience: Patience = PATIENCE,
    ) -> None:
        self._inbox: Inbox = queue.SimpleQueue()
        self._patience = patience
        self._timeout_s = timeout_s
        self.warm_points: set[str] = set()  # ids of the points whose warm-ups they have made
        # samples of the task under way by host, in the order in which operations ended
        self.measured: dict[int, list[Sample]] = {}
        self.ready: dict[int, Ready] = {}  # what each host said when it was ready
        self._workers: list[WorkerHandle] = [
            *host.launch(
                setups, environment=environment, python=python, logs=logs, inbox=self._inbox
            )
        ]

    def await_ready(self) -> None:
        """Waits until all are ready.

        Raises:
            HostFailed: A worker has ended, or is not ready in time; all of the group are then
                stopped.
        """
        try:
            answers = self._wait(self._timeout_s).keep()
        except BaseException:
            self.stop()
            raise
        self.ready = {host: said for host, said in answers.items() if isinstance(said, Ready)}

    def perform(self, tasks: Sequence[Task], timeout_s: float) -> dict[int, Done]:
        """Has one repeat done, each host its own task.

        Args:
            tasks: The task of each host, by index.
            timeout_s: Seconds that all may take together.

        Returns:
            How each host ended that ended by itself.

        Raises:
            HostFailed: A host died, froze or took too long.
            CannotRecord: A record could not be written.
        """
        wait = self._wait(timeout_s)
        self._send(tasks)
        answers = wait.keep(self.measured)
        return {host: said for host, said in answers.items() if isinstance(said, Done)}

    def perform_and_kill(
        self, tasks: Sequence[Task], kill: Kill, timeout_s: float
    ) -> Killed | dict[int, Done]:
        """Has training begun, each host its own task, and kills it at a step.

        Returns:
            How it was killed, or how hosts ended that ended before.

        Raises:
            HostFailed: A host ended in another way.
        """
        self._send(tasks)
        return kill(self._workers, self._inbox, timeout_s)

    def dismiss(self) -> None:
        """Lets the workers end on their own."""
        for worker in self._workers:
            worker.dismiss()

    def stop(self) -> None:
        """Ends the workers, all at once; a second call does nothing."""
        self.dismiss()
        workers, self._workers = self._workers, []
        stop_all([worker.stop for worker in workers])

    def _send(self, tasks: Sequence[Task]) -> None:
        self.measured = {host: [] for host in range(len(self._workers))}
        for worker, task in zip(self._workers, tasks, strict=True):
            with contextlib.suppress(WorkerDied):  # its last line, which is empty, tells of it
                worker.send(task.model_dump_json())

    def _wait(self, timeout_s: float) -> GroupWait:
        return GroupWait(self._workers, self._inbox, timeout_s=timeout_s, patience=self._patience)
