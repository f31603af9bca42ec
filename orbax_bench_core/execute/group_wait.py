"""Wait for a group of workers: until each has answered, or one has failed."""

from __future__ import annotations

import dataclasses
import queue
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from orbax_bench_core.execute.causes import Cause, HostEvidence, first_failed_host
from orbax_bench_core.execute.hosts import HostLost, Inbox, WorkerDied, WorkerHandle
from orbax_bench_core.execute.liveness import Liveness, Patience, Pulse
from orbax_bench_core.interrupts import raise_if_told
from orbax_bench_core.measure import Sample
from orbax_bench_core.records import ErrorInfo
from orbax_bench_core.worker import Done, Measured, Ready, Unrecorded, event_of

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
        self, workers: Sequence[WorkerHandle], inbox: Inbox, *, timeout_s: float, patience: Patience
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
        """Waits until all have answered.

        Args:
            measured: Takes the samples of each host as its operations end.

        Returns:
            The answer of each host; without those that could tell only of a lost peer.

        Raises:
            HostFailed: A host ended, or stands, without an answer of its own.
            CannotRecord: A record could not be written.
        """
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
                # It will say nothing more, and in `frozen_s` its peers have had longer than
                # `settle_s`.
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
            raise self._describe_timeout(evidence)
        cause = evidence[host].cause
        if not self._failure(host):
            raise self._describe_failure(host, cause)
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

    def _describe_failure(self, host: int, cause: Cause) -> HostFailed:
        """Describes the failure of a host that has not reported it."""
        if host not in self._deaths:
            kind, stacks = cause.name.capitalize(), self._workers[host].stacks()
            return HostFailed(host, kind, self._describe_standing(host), stacks)
        death = self._deaths[host]
        if isinstance(death, HostLost):
            return HostFailed(host, "HostLost", str(death), "")
        alone = len(self._workers) == 1 or cause is not Cause.LOST_PEER
        doubt = "" if alone else "; it had lost a peer, and no host shows why"
        return HostFailed(host, "WorkerDied", f"{death}{doubt}", death.tail)

    def _describe_timeout(self, evidence: Mapping[int, HostEvidence]) -> HostFailed:
        waiting = self._waiting()
        stalled = [host for host in waiting if evidence[host].cause is Cause.STALLED]
        message = f"not done after timeout_s = {self._timeout_s:g} seconds"
        if len(waiting) == 1 or stalled:
            suspects = (stalled or waiting)[:1]
            message += f": {self._describe_standing(suspects[0])}"
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

    def _describe_standing(self, host: int) -> str:
        pulse = self._pulses[host]
        signs, judgement = pulse.signs, pulse.judgement()
        process = "process" if signs.pid is None else f"process {signs.pid}"
        where = f" on {signs.hostname}" if signs.hostname else ""
        return f"host {host} ({process}{where}) {judgement.said}"
