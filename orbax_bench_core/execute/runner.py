"""Runner: repeats handed to workers, and a record of every one that fails."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from orbax_bench_core.authoring import Drill, Killed
from orbax_bench_core.config import Arm
from orbax_bench_core.execute.alike import SharedFailure
from orbax_bench_core.execute.drill import Strike
from orbax_bench_core.execute.group import WorkerGroup
from orbax_bench_core.execute.outcomes import (
    WarmUpEnded,
    attempts_so_far,
    began_nothing,
    peer_failed,
)
from orbax_bench_core.execute.pool import WorkerPool
from orbax_bench_core.execute.schedule import environments, round_order, schedule
from orbax_bench_core.execute.session import Progress, Retry, Session
from orbax_bench_core.execute.vigil import CannotRecord, HostFailed
from orbax_bench_core.interrupts import raise_if_told
from orbax_bench_core.leases import LeaseLost
from orbax_bench_core.records import AlreadyRecorded, ErrorInfo, Record, Repeat
from orbax_bench_core.sweep import (
    Pair,
    SweepEntry,
    SweepPoint,
    placement,
    side,
    sides,
    suite_folder,
)
from orbax_bench_core.worker import Done, Task

_DRILLED: Final = -1
"""The life that is killed, and the one that goes on after it."""


def run_points(session: Session, meanwhile: Callable[[], object] | None = None) -> None:
    """Runs every repeat of the points of a session that has no finished record yet.

    Args:
        session: What is measured.
        meanwhile: As `runner_of` takes it.

    Raises:
        CannotRecord: A record could not be written.
        AllAlike: Every point so far lacked the same, where the settings give up then.
    """
    info = session.info
    shared = SharedFailure(session.plain) if session.settings.give_up else None
    with runner_of(session, meanwhile) as runner:
        for point, index in schedule(session.plain, info.num_repeats, info.execution):
            repeat = runner.finish(point, index)
            if shared is not None:
                shared.look(point, repeat)


def run_rounds(session: Session, next_round: Callable[[int], Sequence[SweepPoint]]) -> None:
    """Runs whole rounds of a session's points, in the order that a run without a search has.

    Args:
        session: What is measured.
        next_round: Given the number of a round, from 0, returns the points to measure in it, when
            all rounds before have records; none ends it.

    Raises:
        CannotRecord: A record could not be written.
    """
    with runner_of(session) as runner:
        number = 0
        while points := next_round(number):
            for point in round_order(points, number, session.info.execution):
                runner.finish(point, number)
            number += 1


def run_until(session: Session, ended: Callable[[SweepPoint, Repeat], bool]) -> int:
    """Runs repeats of each point, one point after the other, until they are enough.

    Every point has workers of its own, so that what one leaves in a process does not count for the
    next.

    Args:
        session: What is measured, without arms.
        ended: Told of each repeat in order, whether it is made now or was there; returns whether it
            is the last of its point.

    Returns:
        The fewest repeats that a point has now.

    Raises:
        CannotRecord: A record could not be written.
    """
    made = []
    for point in session.plain:
        with runner_of(dataclasses.replace(session, entries=(point,))) as runner:
            for index in itertools.count():
                if ended(point, runner.finish(point, index)):
                    made.append(index + 1)
                    break
    return min(made)


@contextlib.contextmanager
def runner_of(session: Session, meanwhile: Callable[[], object] | None = None) -> Iterator[Runner]:
    """Makes the environments that a session needs, and a runner whose workers end with it.

    Args:
        session: What is measured.
        meanwhile: Called once, while the first workers start. Nothing is measured before it has
            returned, nor is it called where nothing is left to measure.
    """
    unmade = session.settings.host.make_environments(
        environments(session.entries),
        folder=suite_folder(session.suite.source.file) or Path.cwd(),
        say=session.say,
    )
    share = any(_needs_two_groups(entry) for entry in session.entries)
    with WorkerPool(session, unmade=unmade, share=share, meanwhile=meanwhile) as pool:
        yield Runner(session, pool)


class Runner:
    """Makes sure that repeats have records."""

    def __init__(self, session: Session, pool: WorkerPool) -> None:
        """Hands the repeats of `session` to the workers of `pool`."""
        self._keep_data = not session.settings.remove_repeated_dir
        self._run = session.directory
        self._info = session.info
        self._code = session.code
        self._pool = pool
        self._host = session.settings.host
        self._watch = session.watch
        self._timeout_s = session.info.execution.timeout_s
        self._drills = session.settings.drill

    @property
    def starts(self) -> list[float]:
        """Seconds that each start of workers took that had to wait for the end of others."""
        return self._pool.starts

    def missing(self, point: SweepEntry, index: int, arm: Arm | None = None) -> bool:
        """Returns whether one repeat is still to be run."""
        return not _ended(self._run.read_repeat(point, index, arm), arm)

    def finish(
        self,
        point: SweepEntry,
        index: int,
        arm: Arm | None = None,
        block: int | None = None,
        life: int | None = None,
    ) -> Repeat:
        """Makes sure that one repeat has finished records, or has failed as often as allowed.

        A repeat of a pair that has failed before is not run again: its first attempt counts.

        Args:
            point: The point or pair.
            index: Which repeat of it.
            arm: Which side of a pair.
            block: The block of a paired comparison.
            life: The slot of the block, within `lives`, that has a worker of its own.

        Raises:
            CannotRecord: A record could not be written, or the run directory is gone.
        """
        slot = _Slot(point, index, arm, block, life)
        raise_if_told()
        self._check_run()
        repeat = self._read(slot)
        if _ended(repeat, arm):
            self._watch(slot.progress(repeat=repeat, reused=True))
            return repeat
        tried = _Try()
        for left in range(self._info.execution.retries, -1, -1):
            try:
                tried = self._try(slot, self._tasks(slot, repeat, tried.errors))
            except OSError:
                self._check_run()
                raise
            self._check_run()
            repeat = self._read(slot)
            if life is not None and repeat.attempts:
                # What a retry left in its process must not be in the operations that follow.
                self._pool.end_life(life)
            if repeat.finished or tried.in_vain:
                break
            if left:
                self._watch(slot.retry(repeat.reason, left))
        self._watch(slot.progress(repeat=repeat))
        return repeat

    @contextlib.contextmanager
    def lives(self, pair: Pair, arms: Mapping[int, Arm]) -> Iterator[bool]:
        """Has each of some slots of a block measured by workers of its own, which end with it.

        Args:
            pair: The pair.
            arms: What each slot measures.

        Yields:
            Whether all of them are alive at once; otherwise one is to follow the other.
        """
        if self._drills:
            yield False  # every repeat has processes of its own
            return
        points = {slot: pair.arm(arm) for slot, arm in arms.items()}
        try:
            yield self._pool.begin_lives(points, self._timeout_s)
        finally:
            self._pool.end_lives()

    def end_life(self, life: int) -> None:
        """Ends the workers of one slot, if there are any."""
        self._pool.end_life(life)

    def _read(self, slot: _Slot) -> Repeat:
        return self._run.read_repeat(slot.point, slot.repeat, slot.arm, slot.block, slot.life)

    def _tasks(
        self,
        slot: _Slot,
        earlier: Repeat | None = None,
        errors: Mapping[int, ErrorInfo] = MappingProxyType({}),
    ) -> list[Task]:
        """Returns one task per host; without `earlier`, of a warm-up.

        Args:
            slot: What they measure.
            earlier: What was recorded of it before.
            errors: How hosts failed in the last try, also those whose record says that they passed.
        """
        attempts = {} if earlier is None else attempts_so_far(earlier, errors)
        fence = "" if self._run.fence is None else str(self._run.fence)
        return [
            Task(
                run_id=self._info.run_id,
                suite=self._info.suite_name,
                config_hash=self._info.suite_identity,
                point=slot.point,
                repeat=slot.repeat,
                warmup=earlier is None,
                arm=slot.arm,
                block=slot.block,
                life=slot.life,
                host=host,
                num_hosts=slot.measured.processes,
                code=self._code.of(slot.measured),
                verify=self._info.execution.verify == "digest",
                attempts=attempts.get(host, ()),
                fence=fence,
                replaces=self._replaced(slot, earlier, host),
            )
            for host in range(slot.measured.processes)
        ]

    def _replaced(self, slot: _Slot, earlier: Repeat | None, host: int) -> str:
        """Returns the seal of the record of a host that passed in a repeat that did not."""
        if earlier is None or host not in earlier.records or not earlier.records[host].finished:
            return ""
        return self._run.seal(slot.point, slot.repeat, host=host)

    def _try(self, slot: _Slot, tasks: Sequence[Task]) -> _Try:
        """Runs a repeat in a group that is warm for its point; whatever happens is recorded."""
        num_hosts = len(tasks)
        ended: dict[int, Done] = {}
        errors: dict[int, ErrorInfo] = {}
        started_at, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
        group: WorkerGroup | None = None

        def record_missing(errors: dict[int, ErrorInfo], *, skipped: bool = False) -> None:
            """Records the hosts in `errors`, which could not do it themselves."""
            for host, error in errors.items():
                started = None if group is None else group.ready[host]
                ran_on = self._host.provenance(host) if started is None else started.provenance
                self._write(
                    tasks[host].record(
                        status="skipped" if skipped else "failed",
                        error=error,
                        started_at=started_at,
                        duration_s=time.monotonic() - clock,
                        samples=() if group is None else tuple(group.measured.get(host, ())),
                        provenance=tasks[host].provenance(ran_on, str(self._run.root), None),
                        worker="" if started is None else started.worker,
                    )
                )

        try:
            group = self._group(slot)
            if self._drills:
                self._watch(slot.progress())
                strike = self._strike(slot)
                killed = self._kill(group, strike, tasks)
                if isinstance(killed, Killed):
                    group, start_s = self._restarted(slot)
                    after = Drill(killed=dataclasses.replace(killed, start_s=start_s))
                    tasks = [task.model_copy(update={"drill": after}) for task in tasks]
                    with strike.restoring():
                        ended = group.perform(tasks, self._timeout_s)
                else:
                    ended = killed
            else:
                self._warm_up(group, slot)
                self._watch(slot.progress())
                ended = group.perform(tasks, self._timeout_s)
        except WarmUpEnded as warm_up:
            ended = warm_up.ended
            record_missing(warm_up.errors(num_hosts), skipped=warm_up.skipped)
        except HostFailed as failure:
            if group is not None:
                # A host that still ran would put its own view of the failure over this one.
                self._pool.discard(group)
            own = ErrorInfo(type=failure.kind, message=failure.message, traceback=failure.tail)
            peer = peer_failed(failure.host, failure.message)
            peers = dict.fromkeys(range(num_hosts), peer)
            errors = {**peers, **failure.others, failure.host: own}
            record_missing(errors)
        else:
            late = set(range(num_hosts)) - ended.keys()
            first = next((host for host, done in ended.items() if done.status == "failed"), None)
            if late and first is not None:
                record_missing(dict.fromkeys(late, peer_failed(first, ended[first].reason)))
        if (
            group is not None
            and not self._read(slot).finished
            and not began_nothing(group, ended, num_hosts)
        ):
            self._pool.discard(group)
        if self._drills:
            self._pool.end_life(_DRILLED)
        if not self._keep_data:
            self._run.remove_data(slot.point, slot.repeat, warmup=False, arm=slot.arm)
        return _Try(in_vain=any(done.in_vain for done in ended.values()), errors=errors)

    @staticmethod
    def _strike(slot: _Slot) -> Strike:
        """Draws how a repeat is killed; both arms of a block at one step."""
        seed = f"{slot.point.id}:{slot.repeat if slot.block is None else slot.block}"
        return Strike.of(slot.measured, seed)

    def _kill(
        self, group: WorkerGroup, strike: Strike, tasks: Sequence[Task]
    ) -> Killed | dict[int, Done]:
        """Has a repeat train in fresh processes and kills it."""
        first = [task.model_copy(update={"drill": Drill()}) for task in tasks]
        try:
            return group.perform_and_kill(first, strike, self._timeout_s)
        finally:
            self._pool.end_life(_DRILLED)

    def _restarted(self, slot: _Slot) -> tuple[WorkerGroup, float]:
        """Starts the processes that go on after a kill; returns them, and the seconds it took."""
        began = time.monotonic()
        group = self._group(slot)
        return group, time.monotonic() - began

    def _group(self, slot: _Slot) -> WorkerGroup:
        if self._drills:
            return self._pool.life(_DRILLED, slot.measured, self._timeout_s)
        if slot.life is None:
            return self._pool.group(slot.measured, self._timeout_s)
        return self._pool.life(slot.life, slot.measured, self._timeout_s)

    def _warm_up(self, group: WorkerGroup, slot: _Slot) -> None:
        """Makes the warm-ups of what a slot measures in a group that has not made them."""
        if slot.measured.id in group.warm_points:
            return
        warmups = self._info.execution.warmups
        for _ in range(warmups if slot.life is None else max(1, warmups)):
            index = self._run.next_warmup(slot.point)
            warmup = _Slot(slot.point, index, slot.arm)
            self._watch(warmup.progress(index=None))
            try:
                ended = group.perform(self._tasks(warmup), self._timeout_s)
            finally:
                self._run.remove_data(slot.point, index, warmup=True, arm=slot.arm)
            if any(done.status != "passed" for done in ended.values()):
                raise WarmUpEnded(ended)
        group.warm_points.add(slot.measured.id)

    def _check_run(self) -> None:
        try:
            self._run.check_there()
        except OSError as failure:
            raise CannotRecord(str(failure)) from None

    def _write(self, record: Record) -> None:
        self._check_run()
        try:
            with contextlib.suppress(AlreadyRecorded):  # it came to its end after all
                self._run.write_record(record)
        except (OSError, LeaseLost) as failure:
            raise CannotRecord(f"cannot write the record: {failure}") from None


class _Try(NamedTuple):
    """How a try ended.

    Attributes:
        in_vain: Whether it failed for want of something that another try would lack as well.
        errors: The errors of hosts that could not record them themselves.
    """

    in_vain: bool = False
    errors: Mapping[int, ErrorInfo] = MappingProxyType({})


class _Slot(NamedTuple):
    """A repeat that is to be made, and which side of its point it measures."""

    point: SweepEntry
    repeat: int
    arm: Arm | None = None
    block: int | None = None
    life: int | None = None

    @property
    def measured(self) -> SweepPoint:
        return side(self.point, self.arm)

    def progress(self, **fields: Any) -> Progress:
        return Progress(**{**self._which(), **fields})

    def retry(self, reason: str, left: int) -> Retry:
        return Retry(**self._which(), reason=reason, left=left)

    def _which(self) -> dict[str, Any]:
        which = {"point": self.point, "index": self.repeat, "arm": self.arm}
        return {**which, "block": self.block, "life": self.life}


def _ended(repeat: Repeat, arm: Arm | None) -> bool:
    """Returns whether a repeat is left as it is; in a comparison a failure is a result as well."""
    return repeat.finished or (arm is not None and repeat.first_failed)


def _needs_two_groups(entry: SweepEntry) -> bool:
    return len({placement(point) for point in sides(entry).values()}) > 1
