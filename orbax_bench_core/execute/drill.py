"""Kill of a recovery drill: at a step of training, and when it is noticed."""

import contextlib
import dataclasses
import queue
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Self

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.group_wait import CannotRecord, HostFailed
from orbax_bench_core.execute.hosts import ClusterHosts, Host, Inbox, RemoteWorker, WorkerHandle
from orbax_bench_core.interface import Killed
from orbax_bench_core.measure import TIME
from orbax_bench_core.sweep import SweepPoint
from orbax_bench_core.worker import Done, Measured, Ready, Unrecorded, event_of

STEP: Final = "step"
"""The operation that a trainer measures with every step: its progress."""

Kills = Literal["last", "all", "host", "store", "all_and_store"]

_SAVES_BEFORE: Final = 2
"""A job is killed after so many saves, and before the next one."""
_NOTICED_S: Final = 30.0
"""Seconds within which the parent of a killed process has to notice its end."""
_COMMAND_S: Final = 60.0
"""Seconds that a command which takes a store away, or brings it back, may take."""
_OUTAGE_S: Final = 30.0
"""Seconds for which a store is away, unless the suite says otherwise."""
_WHEN: Final[Mapping[str, Literal["store", "all_and_store"]]] = {
    "training": "store",
    "restoring": "all_and_store",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Store:
    """Store that a drill takes away and brings back, by commands on the host of process 0."""

    down: str
    up: str
    outage_s: float
    kills: Literal["store", "all_and_store"]

    @classmethod
    def of(cls, name: str, given: Mapping[str, Any]) -> Self:
        """Reads the option `kill` of a point."""
        found = {"when": "training", "outage_s": _OUTAGE_S, **given}
        unknown = found.keys() - {"store_down", "store_up", "when", "outage_s"}
        outage_s = found["outage_s"]
        problem = ""
        if unknown:
            problem = f"unknown: {', '.join(sorted(map(str, unknown)))}"
        elif found["when"] not in _WHEN:
            problem = f"when is one of {', '.join(_WHEN)}, got {found['when']!r}"
        elif not isinstance(outage_s, int | float) or not 0 < outage_s < float("inf"):
            problem = f"outage_s is a number of seconds above 0, got {outage_s!r}"
        elif not all(isinstance(found.get(key), str) for key in ("store_down", "store_up")):
            problem = "store_down and store_up are commands, which it needs both"
        if problem:
            raise UserError(
                f"{name}: kill: {problem}; such as {{store_down: umount -f /ckpt, store_up: mount "
                "/ckpt, when: training, outage_s: 60}"
            )
        return cls(
            down=found["store_down"],
            up=found["store_up"],
            outage_s=float(outage_s),
            kills=_WHEN[found["when"]],
        )

    @contextlib.contextmanager
    def away(self) -> Iterator[Callable[[], None]]:
        """Takes it away, and always brings it back; yields what brings it back earlier."""
        lock, failures = threading.Lock(), list[str]()
        is_back = False

        def back() -> None:
            nonlocal is_back
            with lock:
                if not is_back:
                    is_back = True
                    failures.append(_run(self.up))

        try:
            if failure := _run(self.down):
                raise HostFailed(0, "StoreNotTaken", f"store_down: {failure}", "")
            yield back
        finally:
            back()
        if failures[0]:
            raise HostFailed(0, "StoreNotBack", f"store_up: {failures[0]}", "")


def _run(command: str) -> str:
    """Runs a command of the user by the shell, and returns why it failed; empty if it did not."""
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMMAND_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{command!r} took more than {_COMMAND_S:g} s"
    if not done.returncode:
        return ""
    return f"{command!r} ended with {done.returncode}: {done.stderr[-500:].strip()}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kill:
    """Kill of workers while they train."""

    step: int  # after which step
    # what is killed: the `last` process; `all`; the `host` of the last with its agent; the `store`,
    # and no process; or all, and the store once new ones are up
    kills: Kills
    # seconds for which the others are left alone, to see when they notice by themselves
    peers_s: float
    store: Store | None = None  # the store that is taken away; None if it stays

    @classmethod
    def of(cls, point: SweepPoint, seed: str) -> Self:
        """Draws the step of one repeat, evenly over an interval between two saves."""
        options = point.options
        try:
            interval = int(options["save_interval_steps"])
            kill, peers_s = options["kill"], float(options["peers_wait_s"])
        except KeyError as missing:
            raise UserError(
                f"{point.name} cannot be drilled: it has no option {missing}; take the benchmark "
                "training_job, as examples/recovery.yaml does"
            ) from None
        store = None
        if isinstance(kill, Mapping):
            store = Store.of(point.name, kill)
            kill = store.kills
        offset = random.Random(seed).randint(1, interval)
        return cls(step=_SAVES_BEFORE * interval + offset, kills=kill, peers_s=peers_s, store=store)

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
        if self.kills == "store":
            return self._take_store(inbox, steps)
        return self._kill(workers, inbox, steps)

    @contextlib.contextmanager
    def restoring(self) -> Iterator[None]:
        """Has the store away for a time, if that is when it is to be killed; else does nothing."""
        if self.store is None or self.kills != "all_and_store":
            yield
            return
        with self.store.away() as back:
            timer = threading.Timer(self.store.outage_s, back)
            timer.daemon = True
            timer.start()
            try:
                yield
            finally:
                timer.cancel()

    def _take_store(self, inbox: Inbox, steps: int) -> Killed:
        assert self.store is not None
        with self.store.away():
            began = time.monotonic()
            for host, line in _lines(inbox, self.store.outage_s):
                event = event_of(line) if line else None
                steps += _steps(host, event)
                if not line or isinstance(event, Done | Unrecorded):
                    return Killed(steps=steps, notice_s=time.monotonic() - began, start_s=0.0)
        raise HostFailed(
            0,
            "NotNoticed",
            f"training went on for outage_s = {self.store.outage_s:g} seconds without its store, "
            "and did not notice",
            "",
        )

    def _kill(self, workers: Sequence[WorkerHandle], inbox: Inbox, steps: int) -> Killed:
        victims = workers if self.kills in ("all", "all_and_store") else workers[-1:]
        first = len(workers) - len(victims)
        began = time.monotonic()
        for victim in victims:
            kill = victim.kill
            if self.kills == "host" and isinstance(victim, RemoteWorker):
                kill = victim.kill_host
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
