"""Kill of a recovery drill: at a step of training, and when it is noticed."""

import contextlib
import dataclasses
import queue
import random
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final, Literal, Self

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.group_wait import CannotRecord, HostFailed
from orbax_bench_core.execute.hosts import ClusterHosts, Host, Inbox, RemoteWorker, WorkerHandle
from orbax_bench_core.interface import Killed
from orbax_bench_core.measure import TIME
from orbax_bench_core.sweep import SweepPoint
from orbax_bench_core.worker import Done, Measured, Ready, Unrecorded, event_of

STEP: Final = "step"
"""The operation that a trainer measures with every step: its progress."""

Kills = Literal["last", "all", "host"]

_SAVES_BEFORE: Final = 2
"""A job is killed after so many saves, and before the next one."""
_NOTICED_S: Final = 30.0
"""Seconds within which the parent of a killed process has to notice its end."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kill:
    """Kill of workers while they train."""

    step: int  # after which step
    kills: Kills  # the `last` process; `all`; or the `host` of the last with its agent
    # seconds for which the others are left alone, to see when they notice by themselves
    peers_s: float

    @classmethod
    def of(cls, point: SweepPoint, seed: str) -> Self:
        """Draws the step of one repeat, evenly over an interval between two saves.

        Args:
            point: The point; its options name the save interval in steps, and what is killed.
            seed: The same seed gives the same step, so that both arms of a block are killed alike.

        Raises:
            UserError: The benchmark lacks an option that a drill needs.
        """
        options = point.options
        try:
            interval = int(options["save_interval_steps"])
            kill, peers_s = options["kill"], float(options["peers_wait_s"])
        except KeyError as missing:
            raise UserError(
                f"{point.name} cannot be drilled: it has no option {missing}; take the benchmark "
                "training_job, as examples/recovery.yaml does"
            ) from None
        offset = random.Random(seed).randint(1, interval)
        return cls(step=_SAVES_BEFORE * interval + offset, kills=kill, peers_s=peers_s)

    def check(self, point: SweepPoint, host: Host) -> None:
        """Checks that there is what is to be killed.

        Raises:
            UserError: The host of the last process is to be killed, and it is that of process 0.
        """
        if self.kills != "host":
            return
        if not isinstance(host, ClusterHosts) or not host.place(point.processes - 1):
            raise UserError(
                f"{point.name}: `kill: host` kills the host of the last process, and that of "
                "process 0 watches the drill: start the command on several hosts, with a process "
                "on each"
            )

    def __call__(
        self, workers: Sequence[WorkerHandle], inbox: Inbox, timeout_s: float
    ) -> Killed | dict[int, Done]:
        """Waits for the step, kills, and waits until that is noticed."""
        steps = 0
        for host, line in _lines(inbox, timeout_s):
            if not line:
                death = workers[host].death()
                raise HostFailed(host, "WorkerDied", str(death), death.tail)
            event = event_of(line)
            if isinstance(event, Unrecorded):
                raise CannotRecord(event.reason)
            if isinstance(event, Done):
                return {host: event}
            steps += _steps(host, event)
            if steps >= self.step:
                break
        else:
            message = f"step {self.step} was not reached after timeout_s = {timeout_s:g} seconds"
            raise HostFailed(0, "Timeout", message, workers[0].stacks())
        return self._kill(workers, inbox, steps)

    def _kill(self, workers: Sequence[WorkerHandle], inbox: Inbox, steps: int) -> Killed:
        victims = workers if self.kills == "all" else workers[-1:]
        first = len(workers) - len(victims)
        began = time.monotonic()
        for victim in victims:
            kill = victim.kill
            if self.kills == "host" and isinstance(victim, RemoteWorker):
                kill = victim.kill_host
            # A kill waits until its process is gone, and all are to be killed at one moment.
            threading.Thread(target=kill, name="kill", daemon=True).start()
        notice_s = peers_s = None
        for host, line in _lines(inbox, _NOTICED_S):
            steps += _steps(host, event_of(line) if line else None)
            if not line and host >= first:
                notice_s = time.monotonic() - began
                break
        else:
            raise HostFailed(first, "Timeout", "it was killed, and its end was not seen", "")
        # Lines that are on their way are read in any case: they may tell of steps that were done.
        for host, line in _lines(inbox, self.peers_s if first else 0.0):
            event = event_of(line) if line else None
            steps += _steps(host, event)
            if host < first and (not line or isinstance(event, Done)):
                peers_s = time.monotonic() - began
                break
        return Killed(steps=steps, notice_s=notice_s, start_s=0.0, peers_s=peers_s)


def _steps(host: int, event: Ready | Measured | Done | Unrecorded | None) -> int:
    if host != 0 or not isinstance(event, Measured):
        return 0
    return sum(sample.operation == STEP and sample.metric == TIME for sample in event.samples)


def _lines(inbox: Inbox, timeout_s: float) -> Iterator[tuple[int, bytes]]:
    """Yields lines until the time is over, and those that have come by then."""
    deadline = time.monotonic() + timeout_s
    with contextlib.suppress(queue.Empty):
        while True:
            yield inbox.get(timeout=max(0.0, deadline - time.monotonic()))
