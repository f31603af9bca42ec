"""Pool of the worker groups of one run."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from orbax_bench_core import sweep
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.group import WorkerGroup
from orbax_bench_core.execute.group_wait import HostFailed
from orbax_bench_core.execute.hosts import MOST_GROUPS, Unmade, stop_all
from orbax_bench_core.files import names_in, new_scratch_folder
from orbax_bench_core.measure import free_memory_bytes
from orbax_bench_core.records import NO_ENVIRONMENT, ErrorInfo
from orbax_bench_core.worker import WorkerSetup

if TYPE_CHECKING:
    from orbax_bench_core.execute.session import Session
    from orbax_bench_core.sweep import SweepPoint

_MAX_SHARING_GROUPS = 2
"""Groups that share an accelerator: one of each arm of a comparison."""

_ROOM_TO_WAIT: Final = 4 << 30
"""Bytes of free memory for each group that waits: a worker takes about a twentieth of that, which
must not decide whether a large checkpoint fits."""


class WorkerPool:
    """Keeps one warm group per placement, see `Placement`.

    Accelerators have one group for all numbers of devices: they have the devices that they have,
    and a second process could not open them. GPUs can be shared by two when nobody takes all their
    memory first, which a pool that is told to share sees to. A pool is a context manager; leaving
    it ends every worker.
    """

    def __init__(
        self,
        session: Session,
        *,
        unmade: Unmade,
        share: bool,
        meanwhile: Callable[[], object] | None = None,
    ) -> None:
        self._root = str(session.directory.root)
        self._settings, self._keep_data = session.settings, session.keeps_data
        self._unmade = unmade
        self._share = share
        self._meanwhile = meanwhile
        self._platform = ""
        # seconds that each start of a group took that had to wait for another one's end
        self.starts: list[float] = []
        self._environment = _environment(session)
        if share:
            # JAX would take most of a GPU's memory for the first worker that starts.
            self._environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        # Records have the last lines of a worker that failed; there is no other place for logs.
        self._logs_are_scratch = "://" in self._root
        self._logs = (
            new_scratch_folder("orbax-bench-logs")
            if self._logs_are_scratch
            else Path(os.fspath(session.directory.logs))
        )
        self._groups: dict[sweep.Placement, WorkerGroup] = {}
        # groups that follow those in turn, started before anything was measured
        self._next: dict[sweep.Placement, list[WorkerGroup]] = {}
        self._coming = 1
        self._lives: dict[int, WorkerGroup | HostFailed] = {}
        self._devices_are_fixed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end_lives()
        _end([*self._groups.values(), *itertools.chain(*self._next.values())])
        self._groups.clear()
        if self._logs_are_scratch:
            shutil.rmtree(self._logs, ignore_errors=True)

    def group(self, point: SweepPoint, timeout_s: float) -> WorkerGroup:
        """A group that can run `point`, starting one within `timeout_s` when there is none.

        Raises:
            HostFailed: A worker did not become ready.
        """
        key = self._key(point)
        if key not in self._groups and self._next.get(key):
            self._groups[key] = self._next[key].pop()
        if key in self._groups:
            # Moves to the end: `_make_room` takes from the front those that were used least
            # recently.
            self._groups[key] = group = self._groups.pop(key)
            return group
        clock = time.monotonic()
        evicted = self._make_room(1)
        group = self._start(point, timeout_s)
        following: list[WorkerGroup] = []
        try:
            following.extend(
                self._start(point, timeout_s, of=f"next_{number}")
                for number in range(self._ahead())
            )
            self._do_meanwhile()
            self._await(group, sweep.placement(point))
        except BaseException:
            _end([group, *following])
            raise
        for each in following:
            # One that does not start is no failure of a repeat: its turn starts another one.
            with contextlib.suppress(HostFailed):
                self._await(each, sweep.placement(point))
                self._next.setdefault(key, []).append(each)
        if evicted:
            self.starts.append(time.monotonic() - clock)
        # The key is asked for again: only a worker that is ready tells whether devices are fixed.
        self._groups[self._key(point)] = group
        return group

    def begin_lives(self, points: Mapping[int, SweepPoint], timeout_s: float) -> bool:
        """Makes ready for the lives of one block, each of which has workers of its own.

        Args:
            points: The point of each slot that is still to be measured.
            timeout_s: Seconds that a start may take.

        Returns:
            Whether all are alive at once; otherwise each is to be ended before the next one begins.
        """
        # All are started at once where all may be alive. What the devices are is known once a
        # worker has started, so the very first life starts alone. A life that does not become ready
        # fails when `life` is asked for it.
        if not points:
            return True
        first = next(iter(points))
        if not self._platform and not self._settings.take_turns:
            self._begin({first: points[first]}, timeout_s)
        if not self._platform or self._limit() < MOST_GROUPS:
            return False
        coming = {slot: point for slot, point in points.items() if slot not in self._lives}
        self._begin(coming, timeout_s)
        return True

    def life(self, slot: int, point: SweepPoint, timeout_s: float) -> WorkerGroup:
        """Returns the workers of one slot of a block, starting them when there are none.

        Raises:
            HostFailed: They did not become ready.
        """
        if slot not in self._lives:
            self._begin({slot: point}, timeout_s)
        found = self._lives[slot]
        if isinstance(found, HostFailed):
            # So that a retry starts new workers, rather than meeting the same failure.
            del self._lives[slot]
            raise found
        return found

    def end_life(self, slot: int) -> None:
        """Ends the workers of one slot, if there are any."""
        found = self._lives.pop(slot, None)
        if isinstance(found, WorkerGroup):
            found.stop()

    def end(self, points: Iterable[SweepPoint], coming: int) -> None:
        """Ends the workers of some points, if there are any.

        `coming` workers of each placement will be asked for, one after the other. As many of them
        as may be alive are started at once, which takes less time, and before anything is measured.

        Args:
            points: Their workers are ended; points of one placement share theirs.
            coming: How many workers of each placement will follow.
        """
        keys = {self._key(point) for point in points}
        _end([self._groups.pop(key) for key in keys if key in self._groups])
        self._coming = min(coming, self._limit() // max(1, len(keys)))

    def _ahead(self) -> int:
        """Returns how many groups start together with one, to follow it."""
        # What the devices are is known once a worker has started.
        if not self._platform or self._lives:
            return 0
        return min(self._coming - 1, free_memory_bytes() // _ROOM_TO_WAIT)

    def end_lives(self) -> None:
        """Ends the workers of all slots."""
        _end(found for found in self._lives.values() if isinstance(found, WorkerGroup))
        self._lives.clear()

    def _begin(self, points: Mapping[int, SweepPoint], timeout_s: float) -> None:
        """Starts workers for some slots at once, and waits until all are ready or have failed."""
        self._make_room(len(points))
        started: dict[int, WorkerGroup] = {}
        for slot, point in points.items():
            try:
                self._lives[slot] = started[slot] = self._start(point, timeout_s, of=f"life_{slot}")
            except HostFailed as failure:
                self._lives[slot] = failure
        self._do_meanwhile()
        for slot, group in started.items():
            try:
                self._await(group, sweep.placement(points[slot]))
            except HostFailed as failure:
                self._lives[slot] = failure

    def _do_meanwhile(self) -> None:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()

    def _await(self, group: WorkerGroup, asked: sweep.Placement) -> None:
        """Waits until a group is ready, and takes from it what the devices are."""
        group.await_ready()
        for host, ready in group.ready.items():
            if differences := ready.differences(asked):
                group.stop()
                raise HostFailed(host, "OtherProcess", differences, "")
        if self._settings.expect is not None:
            try:
                self._settings.expect.check(group.ready)
            except UserError:
                group.stop()
                raise
        if any(ready.fixed for ready in group.ready.values()):
            # With real devices, or a number of them set from outside, a group is like any other.
            self._devices_are_fixed = True
        self._platform = group.ready[0].platform

    def _make_room(self, groups: int) -> bool:
        """Ends those that were used least recently until so many more may be alive."""
        room = self._limit() - len(self._lives) - groups
        following = list(itertools.chain(*self._next.values()))
        if len(self._groups) + len(following) > room:
            # They go first: those in use have made their warm-ups, and these can start again.
            _end(following)
            self._next.clear()
        evicted = False
        while self._groups and len(self._groups) > room:
            self._groups.pop(next(iter(self._groups))).stop()
            evicted = True
        return evicted

    def _key(self, point: SweepPoint) -> sweep.Placement:
        key = sweep.placement(point)
        return key._replace(num_devices=0) if self._devices_are_fixed else key

    def _limit(self) -> int:
        if self._settings.take_turns or self._platform == "tpu":
            return 1
        if self._devices_are_fixed and self._platform != "cpu":
            return _MAX_SHARING_GROUPS if self._share else 1
        return MOST_GROUPS

    def discard(self, group: WorkerGroup) -> None:
        """Ends a group in which something failed: what it left running would be measured."""
        self._groups = {key: kept for key, kept in self._groups.items() if kept is not group}
        self._lives = {slot: kept for slot, kept in self._lives.items() if kept is not group}
        group.stop()

    def _start(self, point: SweepPoint, timeout_s: float, *, of: str = "") -> WorkerGroup:
        num_devices, processes, environment, host_memory, x64 = sweep.placement(point)
        self._check_environment(environment, processes)
        coordinator = self._settings.host.free_address() if processes > 1 else None
        setups = [
            WorkerSetup(
                root=self._root,
                x64=x64,
                # rounded up: each process has as many as the one that needs most
                num_devices=-(-num_devices // processes),
                process_id=process_id,
                num_processes=processes,
                coordinator=coordinator,
                local_directory=self._settings.local_directory,
                keep_data=self._keep_data,
                soak=self._settings.soak,
            )
            for process_id in range(processes)
        ]
        memory = "" if host_memory == "reused" else host_memory
        name = "_".join(filter(None, ["worker", environment, f"{num_devices}_devices", memory, of]))
        names = [f"{name}_host_{host}" for host in range(processes)] if processes > 1 else [name]
        return WorkerGroup(
            self._settings.host,
            setups,
            environment={
                **self._environment,
                **sweep.allocator_settings(
                    host_memory, self._environment.get("GLIBC_TUNABLES", "")
                ),
                **self._pinned_devices(processes),
            },
            python=environment,
            logs=[self._logs / f"{name}.log" for name in names],
            timeout_s=timeout_s,
            patience=self._settings.patience,
        )

    def _check_environment(self, name: str, processes: int) -> None:
        reasons = {
            host: f"{name}: {reason}"
            for host, reason in self._unmade.get(name, {}).items()
            if host < processes
        }
        if reasons:
            first = min(reasons)
            others = {
                host: ErrorInfo(type=NO_ENVIRONMENT, message=reason)
                for host, reason in reasons.items()
                if host != first
            }
            raise HostFailed(first, NO_ENVIRONMENT, reasons[first], "", others)

    def _pinned_devices(self, processes: int) -> dict[str, str]:
        devices = self._settings.devices
        return {} if devices is None else {"JAX_NUM_CPU_DEVICES": str(max(1, devices // processes))}


def _end(groups: Iterable[WorkerGroup]) -> None:
    ending = list(groups)
    for group in ending:
        group.dismiss()
    stop_all([group.stop for group in ending])


def _environment(session: Session) -> dict[str, str]:
    environment = sweep.benchmark_environment(session.suite.source.file)
    if session.settings.hlo_dump:
        # XLA reads its flags once, before the first device is used.
        folder = session.directory.folder("hlo_dump")
        for name in names_in(folder):  # files of the same names are written over
            session.directory.folder(f"{folder.name}/{name}")
        flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_proto"
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {flags}".strip()
    return environment
