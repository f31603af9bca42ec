"""Worker group: workers that run one point together, and the wait for what they say and show."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import queue
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from orbax_bench_core.execute.hosts import Host, HostLost, Inbox, WorkerDied, WorkerHandle, stop_all
from orbax_bench_core.execute.liveness import PATIENCE, Judgement, Liveness, Patience, Pulse
from orbax_bench_core.interface import Killed
from orbax_bench_core.interrupts import raise_if_told
from orbax_bench_core.measure import Sample
from orbax_bench_core.records import ErrorInfo
from orbax_bench_core.worker import Done, Measured, Ready, Task, Unrecorded, WorkerSetup, event_of

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
        """Waits until all are ready."""
        try:
            answers = self._wait(self._timeout_s).keep()
        except BaseException:
            self.stop()
            raise
        self.ready = {host: said for host, said in answers.items() if isinstance(said, Ready)}

    def perform(self, tasks: Sequence[Task], timeout_s: float) -> dict[int, Done]:
        """Has one repeat done, each host its own task."""
        wait = self._wait(timeout_s)
        self._send(tasks)
        answers = wait.keep(self.measured)
        return {host: said for host, said in answers.items() if isinstance(said, Done)}

    def perform_and_kill(
        self, tasks: Sequence[Task], kill: Kill, timeout_s: float
    ) -> Killed | dict[int, Done]:
        """Has training begun, each host its own task, and kills it at a step."""
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


_DRAIN_S: Final = 0.2
"""Time for lines of other hosts that are still on their way when one was killed."""


@dataclasses.dataclass(eq=False)  # frozen, no context manager could let it pass
class HostFailed(Exception):
    """A host ended in a way that leaves no record of its own, and the group with it."""

    host: int  # the host with which the failure began
    kind: str  # `WorkerDied`, `HostLost`, `Frozen`, `Stalled` or `Timeout`
    message: str  # what is known of it
    tail: str  # the last lines that it printed, or where its threads stand
    # errors of other hosts that may have failed first
    others: Mapping[int, ErrorInfo] = dataclasses.field(default_factory=dict)


class CannotRecord(Exception):
    """A result was measured and cannot be written: going on would lose more."""


class GroupWait:
    """A wait until each worker of a group has answered, or one has failed.

    While it waits, it looks at the signs of those that have not answered. Once one has failed, by
    whatever it says or shows, the others have some seconds to say what they know; then it names the
    host with which the failure began.
    """

    def __init__(
        self,
        workers: Sequence[WorkerHandle],
        inbox: Inbox,
        *,
        timeout_s: float,
        patience: Patience,
    ) -> None:
        """Waits for `workers`, whose lines arrive in `inbox`, for at most `timeout_s` seconds."""
        self._workers = workers
        self._inbox = inbox
        self._timeout_s = timeout_s
        self._patience = patience
        self._pulses = [Pulse(patience) for _ in workers]
        self._answers: dict[int, Ready | Done] = {}
        self._deaths: dict[int, WorkerDied] = {}
        self._troubled: list[int] = []
        self._deadline = time.monotonic() + timeout_s
        self._next_look = time.monotonic() + patience.look_s

    def keep(self, measured: dict[int, list[Sample]] | None = None) -> dict[int, Ready | Done]:
        """Waits until all have answered."""
        for host, event in self._heard():
            if isinstance(event, Measured):
                if measured is not None:
                    measured[host] += event.samples
            elif isinstance(event, Unrecorded):
                refused = None if event.number is None else OSError(event.number, event.reason)
                raise CannotRecord(event.reason) from refused
            else:
                self._answers[host] = event
                if isinstance(event, Done) and event.status == "failed":
                    self._trouble(host)
        if not self._troubled and not self._waiting():
            return self._answers
        return self._conclude()

    def _waiting(self) -> list[int]:
        done = self._answers.keys() | self._deaths.keys()
        return [host for host in range(len(self._workers)) if host not in done]

    def _heard(self) -> Iterator[tuple[int, Ready | Measured | Done | Unrecorded]]:
        """Yields what is said until all have answered or ended, or the time is over."""
        while self._waiting():
            raise_if_told()
            now = time.monotonic()
            if now >= self._next_look:
                self._look()
                self._next_look = time.monotonic() + self._patience.look_s
            until = min(self._deadline, self._next_look)
            try:
                host, line = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                if time.monotonic() >= self._deadline:
                    return
                continue
            if not line:
                self._dead(host)
            elif (event := event_of(line)) is not None:
                yield host, event

    def _look(self) -> None:
        for host in self._waiting():
            pulse = self._pulses[host]
            pulse.observe(time.monotonic(), self._workers[host].signs())
            judgement = pulse.judgement()
            lasting = judgement.lasting_s
            if judgement.liveness is Liveness.DEAD and lasting >= self._patience.confirm_s:
                # Something that it has started still holds the pipe of its events open.
                self._dead(host)
            elif judgement.liveness is Liveness.FROZEN and lasting >= self._patience.frozen_s:
                self._trouble(host, settle_s=0.0)

    def _dead(self, host: int) -> None:
        self._deaths[host] = self._workers[host].death()
        self._pulses[host].observe(time.monotonic(), self._workers[host].signs())
        # What caused these is not to be found on another host.
        certain = self._evidence(host).cause in (Cause.HOST_LOST, Cause.KILLED)
        self._trouble(host, settle_s=_DRAIN_S if certain else self._patience.settle_s)

    def _trouble(self, host: int, settle_s: float | None = None) -> None:
        settle_s = self._patience.settle_s if settle_s is None else settle_s
        self._deadline = min(self._deadline, time.monotonic() + settle_s)
        if host not in self._troubled:
            self._troubled.append(host)

    def _failure(self, host: int) -> str:
        """Returns the failure that a host has reported; empty if it has not."""
        answer = self._answers.get(host)
        failed = isinstance(answer, Done) and answer.status == "failed"
        return answer.reason if failed and isinstance(answer, Done) else ""

    def _evidence(self, host: int) -> HostEvidence:
        death = self._deaths.get(host)
        return HostEvidence(
            judgement=self._pulses[host].judgement(),
            exit_code=self._pulses[host].signs.exit_code,
            ended=death is not None,
            lost=isinstance(death, HostLost),
            tail="" if death is None else death.tail,
            reason=self._failure(host),
        )

    def _conclude(self) -> dict[int, Ready | Done]:
        """Names the host with which the failure began, if it has not recorded that itself."""
        self._look_for_the_last_time()
        hosts = list(dict.fromkeys([*self._troubled, *range(len(self._workers))]))
        evidence = {host: self._evidence(host) for host in hosts}
        host = first_failed_host(evidence)
        if host is None or (not self._troubled and evidence[host].cause is Cause.STALLED):
            raise self._timeout(evidence)
        cause = evidence[host].cause
        if not self._failure(host):
            raise self._unsaid(host, cause)
        # Of those that could tell only of a lost peer, the failed peer is what is to be recorded.
        dropped = {
            each
            for each in hosts
            if evidence[each].cause is Cause.LOST_PEER > cause and self._failure(each)
        }
        return {
            each: self._answers[each] for each in hosts if each in self._answers.keys() - dropped
        }

    def _look_for_the_last_time(self) -> None:
        pulses = [self._pulses[host] for host in self._waiting()]
        if any(pulse.judgement().liveness is Liveness.FROZEN for pulse in pulses):
            return
        self._look()
        if any(pulse.suspect for pulse in pulses):
            time.sleep(self._patience.confirm_s)
            self._look()
        for host in self._waiting():
            if self._pulses[host].judgement().liveness is Liveness.DEAD:
                self._dead(host)

    def _unsaid(self, host: int, cause: Cause) -> HostFailed:
        """Describes the failure of a host that has not reported it."""
        if host not in self._deaths:
            kind, stacks = cause.name.capitalize(), self._workers[host].stacks()
            return HostFailed(host, kind, self._standing(host), stacks)
        death = self._deaths[host]
        if isinstance(death, HostLost):
            return HostFailed(host, "HostLost", str(death), "")
        alone = len(self._workers) == 1 or cause is not Cause.LOST_PEER
        doubt = "" if alone else "; it had lost a peer, and no host shows why"
        return HostFailed(host, "WorkerDied", f"{death}{doubt}", death.tail)

    def _timeout(self, evidence: Mapping[int, HostEvidence]) -> HostFailed:
        waiting = self._waiting()
        stalled = [host for host in waiting if evidence[host].cause is Cause.STALLED]
        message = f"not done after timeout_s = {self._timeout_s:g} seconds"
        if len(waiting) == 1 or stalled:
            suspects = (stalled or waiting)[:1]
            message += f": {self._standing(suspects[0])}"
        else:
            suspects = waiting
            hosts = ", ".join(map(str, waiting))
            message += f": hosts {hosts} wait, and their signs do not tell which one failed"
        with ThreadPoolExecutor(len(suspects)) as pool:  # each may take seconds to print them
            stacks = list(pool.map(lambda host: self._workers[host].stacks(), suspects))
        errors = {
            host: ErrorInfo(type="Timeout", message=message, traceback=stack)
            for host, stack in zip(suspects, stacks, strict=True)
        }
        return HostFailed(suspects[0], "Timeout", message, stacks[0], errors)

    def _standing(self, host: int) -> str:
        pulse = self._pulses[host]
        signs, judgement = pulse.signs, pulse.judgement()
        process = "process" if signs.pid is None else f"process {signs.pid}"
        where = f" on {signs.hostname}" if signs.hostname else ""
        return f"host {host} ({process}{where}) {judgement.said}"


_OWN_SIGNALS = frozenset(
    {
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGSEGV,
        signal.SIGSYS,
        signal.SIGTRAP,
    }
)
_LOST_PEER = re.compile(
    r"coordination.?service|jax distributed service detected|heartbeat|gloo|barrier timed out|"
    r"barrier failed|connection closed by peer",
    re.IGNORECASE,
)


class Cause(enum.IntEnum):
    """Sign of a failure on a host; the smaller one caused the larger.

    A process that was killed or frozen can end its peers, and nothing that a peer does kills or
    freezes it. `OWN` is an exception or a crash. `LOST_PEER` is one that tells of another host: JAX
    and its transports end a process so when a peer no longer answers. `HOST_LOST` comes first: a
    host with which there is no contact takes its workers with it, and their peers.
    """

    HOST_LOST = 0
    KILLED = 1
    FROZEN = 2
    OWN = 3
    STALLED = 4
    LOST_PEER = 5
    NONE = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostEvidence:
    """Evidence on one host when its group has failed: its signs, what it printed and reported."""

    judgement: Judgement
    exit_code: int | None = None  # negative for a signal; None while the process runs
    ended: bool = False
    lost: bool = False  # whether there is no contact with its machine
    tail: str = ""
    reason: str = ""

    @property
    def cause(self) -> Cause:
        """What it shows."""
        if self.lost:
            return Cause.HOST_LOST
        if self.ended:
            return self._cause_of_end()
        if self.judgement.liveness is Liveness.FROZEN:
            return Cause.FROZEN
        if self.reason:
            return Cause.LOST_PEER if _LOST_PEER.search(self.reason) else Cause.OWN
        return Cause.STALLED if self.judgement.liveness is Liveness.STALLED else Cause.NONE

    def _cause_of_end(self) -> Cause:
        killed = self.exit_code is not None and self.exit_code < 0
        if killed and -(self.exit_code or 0) not in _OWN_SIGNALS:
            return Cause.KILLED
        if _LOST_PEER.search(self.reason or self.tail):
            return Cause.LOST_PEER
        return Cause.OWN


def first_failed_host(evidence: Mapping[int, HostEvidence]) -> int | None:
    """Returns the host with which a failure began, or None where no host shows anything."""
    host = min(evidence, key=lambda one: evidence[one].cause, default=None)
    return None if host is None or evidence[host].cause is Cause.NONE else host
