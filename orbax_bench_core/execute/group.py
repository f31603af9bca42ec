"""Worker group: the workers that run one point together, one per host process, joined by JAX."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Mapping, Sequence
from pathlib import Path

from orbax_bench_core.authoring import Killed
from orbax_bench_core.execute.drill import Kill
from orbax_bench_core.execute.group_wait import GroupWait
from orbax_bench_core.execute.hosts import Host, Inbox, WorkerDied, WorkerHandle, stop_all
from orbax_bench_core.execute.liveness import PATIENCE, Patience
from orbax_bench_core.measure import Sample
from orbax_bench_core.worker import Done, Ready, Task, WorkerSetup


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
        python: str,
        logs: Sequence[Path],
        timeout_s: float,
        patience: Patience = PATIENCE,
    ) -> None:
        """Starts one worker per setup; `await_ready` waits for them."""
        self._inbox: Inbox = queue.SimpleQueue()
        self._patience = patience
        self._timeout_s = timeout_s
        self._workers: list[WorkerHandle] = []
        self.warm_points: set[str] = set()
        self.measured: dict[int, list[Sample]] = {}
        self.ready: dict[int, Ready] = {}
        self._workers = list(
            host.launch(
                setups,
                environment=environment,
                python=python,
                logs=logs,
                inbox=self._inbox,
            )
        )

    def await_ready(self) -> None:
        """Waits until all are ready."""
        try:
            self.ready = self._await_ready(self._timeout_s)
        except BaseException:
            self.stop()
            raise

    def perform(self, tasks: Sequence[Task], timeout_s: float) -> dict[int, Done]:
        """Has one repeat done, each host its own task."""
        self.measured = {host: [] for host in range(len(self._workers))}
        group_wait = self._waiting(timeout_s)
        for worker, task in zip(self._workers, tasks, strict=True):
            with contextlib.suppress(WorkerDied):  # its last line, which is empty, tells of it
                worker.send(task.model_dump_json())
        answers = group_wait.keep(self.measured)
        return {host: answer for host, answer in answers.items() if isinstance(answer, Done)}

    def perform_and_kill(
        self, tasks: Sequence[Task], kill: Kill, timeout_s: float
    ) -> Killed | dict[int, Done]:
        """Has training begun, each host its own task, and kills it at a step; see `Kill`."""
        self.measured = {host: [] for host in range(len(self._workers))}
        for worker, task in zip(self._workers, tasks, strict=True):
            with contextlib.suppress(WorkerDied):
                worker.send(task.model_dump_json())
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

    def _await_ready(self, timeout_s: float) -> dict[int, Ready]:
        answers = self._waiting(timeout_s).keep()
        return {host: answer for host, answer in answers.items() if isinstance(answer, Ready)}

    def _waiting(self, timeout_s: float) -> GroupWait:
        return GroupWait(self._workers, self._inbox, timeout_s=timeout_s, patience=self._patience)
