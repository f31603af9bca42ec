"""Runner: repeats handed to workers, their attempts, and a record of every one that fails."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from orbax_bench_core import sweep
from orbax_bench_core.config import Arm, EnvironmentConfig
from orbax_bench_core.execute.attempt import (
    RepeatAttempt,
    RepeatKey,
    WarmUpEnded,
    attempts_so_far,
    check_there,
)
from orbax_bench_core.execute.drill import Kill
from orbax_bench_core.execute.group import WorkerGroup
from orbax_bench_core.execute.group_wait import CannotRecord, HostFailed
from orbax_bench_core.execute.pool import WorkerPool
from orbax_bench_core.execute.session import Session
from orbax_bench_core.interface import Drill, Killed
from orbax_bench_core.interrupts import raise_if_told
from orbax_bench_core.records import ErrorInfo, Repeat
from orbax_bench_core.worker import Task

_DRILLED: Final = -1
"""The life that is killed, and the one that goes on after it."""


@contextlib.contextmanager
def runner_of(session: Session, meanwhile: Callable[[], object] | None = None) -> Iterator[Runner]:
    """Makes the environments that a session needs, and a runner whose workers end with it.

    Args:
        session: The measurement.
        meanwhile: Called once, while the first workers start, for work that needs no worker.

    Raises:
        CannotRecord: At the end, a record that was written before is gone.
    """
    unmade = session.settings.host.make_environments(
        environments(session.entries),
        folder=sweep.suite_folder(session.suite.source.file),
        say=session.say,
    )
    # Arms with other needs have workers of their own at the same time, which share a GPU.
    share = any(
        len({sweep.placement(point) for point in sweep.sides(entry).values()}) > 1
        for entry in session.entries
    )
    with WorkerPool(session, unmade=unmade, share=share, meanwhile=meanwhile) as pool:
        runner = Runner(session, pool)
        yield runner
    runner.check_recorded()


def environments(entries: Iterable[sweep.SweepEntry]) -> list[EnvironmentConfig]:
    """Returns the environments that points or pairs name, each once."""
    named = (point.environment for entry in entries for point in sweep.sides(entry).values())
    return list(
        {environment.name: environment for environment in named if environment is not None}.values()
    )


class Runner:
    """Makes sure that repeats have records."""

    def __init__(self, session: Session, pool: WorkerPool) -> None:
        self._keep_data = session.keeps_data
        self._run = session.directory
        self._info = session.info
        self._code = session.code
        self.pool = pool  # the workers that it hands repeats to
        self._host = session.settings.host
        self._watch = session.watch
        self._timeout_s = session.info.execution.timeout_s
        self._drills = session.settings.drill
        self._recorded: set[tuple[str, int]] = set()
        self._traced: set[tuple[str, Arm | None]] = set()

    def missing(self, point: sweep.SweepEntry, index: int, arm: Arm | None = None) -> bool:
        """Returns whether one repeat is still to be run."""
        return not _ended(self._run.read_repeat(point, index, arm), arm)

    def finish(
        self,
        point: sweep.SweepEntry,
        index: int,
        arm: Arm | None = None,
        block: int | None = None,
        life: int | None = None,
    ) -> Repeat:
        """Makes sure that one repeat has finished records, or has failed as often as allowed.

        Args:
            point: The point or pair.
            index: Index of the repeat.
            arm: Which side of a pair.
            block: Which block of a comparison.
            life: Which slot of the block, where it has workers of its own.

        Returns:
            The repeat as it is recorded now.

        Raises:
            CannotRecord: The run directory takes no records any more.
        """
        # A repeat of a pair that has failed before is not run again: its first attempt counts.
        turn = RepeatKey(point, index, arm, block, life)
        raise_if_told()
        check_there(self._run)
        repeat = self._read(turn)
        self._recorded.add((point.id, index))
        if _ended(repeat, arm):
            self._watch(turn.progress(repeat=repeat, reused=True))
            return repeat
        errors: Mapping[int, ErrorInfo] = {}
        for left in range(self._info.execution.retries, -1, -1):
            try:
                attempt = self._attempt(turn, self._tasks(turn, repeat, errors))
            except OSError:
                # That the directory is gone explains the error better than the error itself.
                check_there(self._run)
                raise
            check_there(self._run)
            repeat = self._read(turn)
            if life is not None and repeat.attempts:
                # What a retry left in its process must not be in the operations that follow.
                self.pool.end_life(life)
            if repeat.finished or repeat.certain:
                break
            errors = attempt.errors
            if left:
                self._watch(turn.retry(repeat.reason, left))
        self._watch(turn.progress(repeat=repeat))
        return repeat

    def check_recorded(self) -> None:
        """Checks that every repeat of this session is still on storage.

        Raises:
            CannotRecord: A record is gone that was written before.
        """
        lost = self._run.lost(self._recorded)
        if lost:
            raise CannotRecord(
                f"{len(lost)} of {len(self._recorded)} measured repeats are gone from "
                f"{self._run.root}, such as {lost[0]}: somebody has removed them meanwhile; run "
                "the same command again, which measures these"
            )

    @contextlib.contextmanager
    def lives(self, pair: sweep.Pair, arms: Mapping[int, Arm]) -> Iterator[bool]:
        """Has each of some slots of a block measured by workers of its own, which end with it.

        Args:
            pair: The pair.
            arms: The arm of each slot that is still to be measured.

        Yields:
            Whether the workers of all slots are alive at once. Otherwise, each is to be ended
            before the next begins.
        """
        if self._drills:
            yield False  # every repeat has processes of its own
            return
        points = {slot: pair.arm(arm) for slot, arm in arms.items()}
        try:
            yield self.pool.begin_lives(points, self._timeout_s)
        finally:
            self.pool.end_lives()

    def _read(self, turn: RepeatKey) -> Repeat:
        return self._run.read_repeat(turn.point, turn.repeat, turn.arm, turn.block, turn.life)

    def _tasks(
        self,
        turn: RepeatKey,
        earlier: Repeat | None = None,
        errors: Mapping[int, ErrorInfo] = MappingProxyType({}),
        *,
        traced: bool = False,
    ) -> list[Task]:
        """Returns one task per host; without `earlier`, of a warm-up."""
        attempts = {} if earlier is None else attempts_so_far(earlier, errors)
        fence = "" if self._run.fence is None else str(self._run.fence)
        return [
            Task(
                run_id=self._info.run_id,
                suite=self._info.suite_name,
                config_hash=self._info.suite_identity,
                point=turn.point,
                repeat=turn.repeat,
                warmup=earlier is None,
                traced=traced,
                arm=turn.arm,
                block=turn.block,
                life=turn.life,
                host=host,
                num_hosts=turn.measured.processes,
                code=self._code.of(turn.measured),
                verify=self._info.execution.verify == "digest",
                attempts=attempts.get(host, ()),
                fence=fence,
                replaces=self._seal_replaced(turn, earlier, host),
            )
            for host in range(turn.measured.processes)
        ]

    def _seal_replaced(self, turn: RepeatKey, earlier: Repeat | None, host: int) -> str:
        """Returns the seal of the record of a host that passed in a repeat that did not."""
        if earlier is None or host not in earlier.records or not earlier.records[host].finished:
            return ""
        # All hosts make the retry, so that the final record of this one has to give way to another.
        return self._run.seal(turn.point, turn.repeat, host=host)

    def _attempt(self, turn: RepeatKey, tasks: list[Task]) -> RepeatAttempt:
        """Runs a repeat in a group that is warm for its point; whatever happens is recorded."""
        attempt = RepeatAttempt(self._run, self._host, tasks)
        try:
            if self._drills:
                self._drill(attempt, turn)
            else:
                group = attempt.group = self._group(turn)
                self._warm_up(group, turn)
                self._watch(turn.progress())
                attempt.ended = group.perform(attempt.tasks, self._timeout_s)
        except WarmUpEnded as warm_up:
            attempt.record_warm_up(warm_up)
        except HostFailed as failure:
            if attempt.group is not None:
                # A host that still ran would put its own view of the failure over this one.
                self.pool.discard(attempt.group)
            attempt.record_failure(failure)
        else:
            attempt.record_late_hosts()
        # A benchmark that failed may have left something running, which the next repeat would
        # measure; one whose need was not met has begun nothing.
        if attempt.group is not None and attempt.began and not self._read(turn).finished:
            self.pool.discard(attempt.group)
        if self._drills:
            self.pool.end_life(_DRILLED)
        if not self._keep_data:
            self._run.remove_data(turn.point, turn.repeat, warmup=False, arm=turn.arm)
        return attempt

    def _drill(self, attempt: RepeatAttempt, turn: RepeatKey) -> None:
        """Kills a repeat that trains in fresh processes, and has others go on after it."""
        group = attempt.group = self._group(turn)
        self._watch(turn.progress())
        # By the block, so that both arms are killed at one step.
        seed = f"{turn.point.id}:{turn.repeat if turn.block is None else turn.block}"
        kill = Kill.of(turn.measured, seed)
        first = [task.model_copy(update={"drill": Drill()}) for task in attempt.tasks]
        try:
            killed = group.perform_and_kill(first, kill, self._timeout_s)
        finally:
            self.pool.end_life(_DRILLED)
        if not isinstance(killed, Killed):
            attempt.ended = killed
            return
        began = time.monotonic()
        group = attempt.group = self._group(turn)
        after = Drill(killed=dataclasses.replace(killed, start_s=time.monotonic() - began))
        attempt.tasks = [task.model_copy(update={"drill": after}) for task in attempt.tasks]
        attempt.ended = group.perform(attempt.tasks, self._timeout_s)

    def _group(self, turn: RepeatKey) -> WorkerGroup:
        if self._drills:
            return self.pool.life(_DRILLED, turn.measured, self._timeout_s)
        if turn.life is None:
            return self.pool.group(turn.measured, self._timeout_s)
        return self.pool.life(turn.life, turn.measured, self._timeout_s)

    def _warm_up(self, group: WorkerGroup, turn: RepeatKey) -> None:
        """Makes the warm-ups that a group has not made, and one that is traced, where it is due."""
        # What is measured is never traced: it would be slower, and count.
        if turn.measured.id not in group.warm_points:
            warmups = self._info.execution.warmups
            # A life is a new process, whose first operation pays for compilation: it is never
            # measured.
            for _ in range(warmups if turn.life is None else max(1, warmups)):
                self._make_warm_up(group, turn)
            group.warm_points.add(turn.measured.id)
        if self._trace_is_due(turn):
            self._make_warm_up(group, turn, traced=True)

    def _make_warm_up(self, group: WorkerGroup, turn: RepeatKey, *, traced: bool = False) -> None:
        index = self._run.next_warmup(turn.point)
        warmup = RepeatKey(turn.point, index, turn.arm)
        self._watch(warmup.progress(index=None))
        try:
            ended = group.perform(self._tasks(warmup, traced=traced), self._timeout_s)
        finally:
            self._run.remove_data(turn.point, index, warmup=True, arm=turn.arm)
        if any(done.status != "passed" for done in ended.values()):
            raise WarmUpEnded(ended)
        if traced:
            self._traced.add((turn.point.id, turn.arm))

    def _trace_is_due(self, turn: RepeatKey) -> bool:
        """Returns whether a trace is asked for, and none is there or each time wants one."""
        point, series = turn.measured, (turn.point.id, turn.arm)
        if not point.is_traced:
            return False
        if point.options.get("trace_every_repeat"):
            return True
        if series not in self._traced and any(
            record.traced and record.status == "passed" and record.arm == turn.arm
            for record in self._run.read_point(turn.point).records
        ):
            self._traced.add(series)
        return series not in self._traced


def _ended(repeat: Repeat, arm: Arm | None) -> bool:
    """Returns whether a repeat is left as it is; in a comparison a failure is a result as well."""
    return repeat.finished or (arm is not None and repeat.first_failed)
