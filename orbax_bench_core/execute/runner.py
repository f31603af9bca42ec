"""Runner: repeats handed to workers, and a record of every one that fails."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from orbax_bench_core.config import Arm
from orbax_bench_core.environments import make_environments
from orbax_bench_core.execute.group import CannotRecord, HostFailed, WorkerGroup
from orbax_bench_core.execute.outcomes import WarmUpEnded, began_nothing, peer_failed
from orbax_bench_core.execute.pool import WorkerPool
from orbax_bench_core.execute.schedule import environments, placement, schedule
from orbax_bench_core.execute.session import Progress, Session
from orbax_bench_core.records import ErrorInfo, Record, Repeat, host_provenance
from orbax_bench_core.sweep import SweepEntry, SweepPoint, side, sides
from orbax_bench_core.worker import Done, Task


def run_points(session: Session) -> None:
    """Runs every repeat of the points of a session that has no finished record yet.

    Raises:
        CannotRecord: A record could not be written.
    """
    info = session.info
    with runner_of(session) as runner:
        for point, index in schedule(session.plain, info.num_repeats, info.execution):
            runner.finish(point, index)


@contextlib.contextmanager
def runner_of(session: Session) -> Iterator[Runner]:
    """Makes the environments that a session needs, and a runner whose workers end with it."""
    interpreters = make_environments(
        environments(session.entries),
        folder=_folder(session.suite.source.file),
        say=session.say,
    )
    share = any(_needs_two_groups(entry) for entry in session.entries)
    with WorkerPool(session, interpreters=interpreters, share=share) as pool:
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
        self._watch = session.watch
        self._timeout_s = session.info.execution.timeout_s

    @property
    def starts(self) -> list[float]:
        """Seconds that each start of workers took that had to wait for the end of others."""
        return self._pool.starts

    def finish(
        self, point: SweepEntry, index: int, arm: Arm | None = None, block: int | None = None
    ) -> Repeat:
        """Makes sure that one repeat has finished records, or has failed as often as allowed.

        A point without arms has no `arm`, and only a paired comparison has blocks.

        Raises:
            CannotRecord: A record could not be written, or the run directory is gone.
        """
        slot = _Slot(point, index, arm, block)
        self._check_run()
        repeat = self._run.read_repeat(point, index, arm)
        if repeat.finished:
            self._watch(slot.progress(repeat=repeat, reused=True))
            return repeat
        for _ in range(self._info.execution.retries + 1):
            in_vain = self._try(slot, self._tasks(slot, earlier=repeat))
            self._check_run()
            repeat = self._run.read_repeat(point, index, arm)
            if repeat.finished or in_vain:
                break
        self._watch(slot.progress(repeat=repeat))
        return repeat

    def _tasks(self, slot: _Slot, *, earlier: Repeat | None = None) -> list[Task]:
        """Returns one task per host; without `earlier`, of a warm-up."""
        records = {} if earlier is None else earlier.records
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
                host=host,
                num_hosts=slot.measured.processes,
                code=self._code.of(slot.measured),
                verify=self._info.execution.verify == "digest",
                attempts=records[host].as_attempt() if host in records else (),
            )
            for host in range(slot.measured.processes)
        ]

    def _try(self, slot: _Slot, tasks: Sequence[Task]) -> bool:
        """Runs a repeat in a group that is warm for its point; whatever happens is recorded.

        Returns:
            Whether it failed for want of something that another try would lack as well.
        """
        num_hosts = len(tasks)
        ended: dict[int, Done] = {}
        started_at, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
        group: WorkerGroup | None = None

        def record_missing(errors: dict[int, ErrorInfo], *, skipped: bool = False) -> None:
            """Records the hosts in `errors`, which could not do it themselves."""
            for host, error in errors.items():
                ran_on = host_provenance() if group is None else group.ready[host].provenance
                self._write(
                    tasks[host].record(
                        status="skipped" if skipped else "failed",
                        error=error,
                        started_at=started_at,
                        duration_s=time.monotonic() - clock,
                        samples=() if group is None else tuple(group.measured.get(host, ())),
                        provenance=tasks[host].provenance(ran_on, str(self._run.root), None),
                    )
                )

        try:
            group = self._pool.group(slot.measured, self._timeout_s)
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
            record_missing(
                {host: own if host == failure.host else peer for host in range(num_hosts)}
            )
        else:
            late = set(range(num_hosts)) - ended.keys()
            first = next((host for host, done in ended.items() if done.status == "failed"), None)
            if late and first is not None:
                record_missing(dict.fromkeys(late, peer_failed(first, ended[first].reason)))
        if (
            group is not None
            and not self._run.read_repeat(*slot[:3]).finished
            and not began_nothing(group, ended, num_hosts)
        ):
            self._pool.discard(group)
        if not self._keep_data:
            self._run.remove_data(slot.point, slot.repeat, warmup=False, arm=slot.arm)
        return any(done.unmet for done in ended.values())

    def _warm_up(self, group: WorkerGroup, slot: _Slot) -> None:
        """Makes the warm-ups of what a slot measures in a group that has not made them."""
        if slot.measured.id in group.warm_points:
            return
        for _ in range(self._info.execution.warmups):
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
            self._run.write_record(record)
        except OSError as failure:
            raise CannotRecord(f"cannot write the record: {failure}") from None


class _Slot(NamedTuple):
    """A repeat that is to be made, and which side of its point it measures."""

    point: SweepEntry
    repeat: int
    arm: Arm | None = None
    block: int | None = None

    @property
    def measured(self) -> SweepPoint:
        return side(self.point, self.arm)

    def progress(self, **fields: Any) -> Progress:
        which = {"point": self.point, "index": self.repeat, "arm": self.arm, "block": self.block}
        return Progress(**{**which, **fields})


def _needs_two_groups(entry: SweepEntry) -> bool:
    return len({placement(point) for point in sides(entry).values()}) > 1


def _folder(suite_file: str) -> Path:
    """Returns the folder that paths in a suite are relative to."""
    local = suite_file and "://" not in suite_file
    return Path(suite_file).resolve().parent if local else Path.cwd()
