"""Attempt at a repeat: how its hosts ended, and records of those that could not write."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Mapping, Sequence

from orbax_bench_core.execute.group import WorkerGroup
from orbax_bench_core.execute.group_wait import CannotRecord, HostFailed
from orbax_bench_core.execute.hosts import Host
from orbax_bench_core.execute.outcomes import WarmUpEnded, began_nothing, peer_failed
from orbax_bench_core.leases import LeaseLost
from orbax_bench_core.records import AlreadyRecorded, ErrorInfo, Record, RunDirectory
from orbax_bench_core.worker import Done, Task


class Try:
    """One try of a repeat, which begins when this is made.

    Attributes:
        tasks: What each host is to do.
        group: The workers that do it; None before they are there.
        ended: How each host ended that ended by itself.
        errors: The errors of hosts that a failure has ended.
    """

    def __init__(self, run: RunDirectory, host: Host, tasks: Sequence[Task]) -> None:
        """Begins a try, whose records belong into `run`; `host` knows where workers would run."""
        self.tasks = tasks
        self.group: WorkerGroup | None = None
        self.ended: dict[int, Done] = {}
        self.errors: dict[int, ErrorInfo] = {}
        self._run, self._host = run, host
        self._started_at, self._clock = datetime.datetime.now(datetime.UTC), time.monotonic()

    @property
    def not_worth_retrying(self) -> bool:
        """Whether it failed for a reason that a retry cannot change."""
        return any(done.not_worth_retrying for done in self.ended.values())

    @property
    def began(self) -> bool:
        """Whether some host measured something, or failed for another reason than an unmet need."""
        return self.group is None or not began_nothing(self.group, self.ended, len(self.tasks))

    def record_warm_up(self, warm_up: WarmUpEnded) -> None:
        """Records that a warm-up ended it."""
        self.ended = warm_up.ended
        self._record(warm_up.errors(len(self.tasks)), skipped=warm_up.skipped)

    def record_failure(self, failure: HostFailed) -> None:
        """Records that a host failed, and how the others were ended for that."""
        own = ErrorInfo(type=failure.kind, message=failure.message, traceback=failure.tail)
        peer = peer_failed(failure.host, failure.message)
        peers = dict.fromkeys(range(len(self.tasks)), peer)
        self.errors = {**peers, **failure.others, failure.host: own}
        self._record(self.errors)

    def record_late_hosts(self) -> None:
        """Records the hosts that had not ended when another one failed."""
        late = set(range(len(self.tasks))) - self.ended.keys()
        first = next((host for host, done in self.ended.items() if done.status == "failed"), None)
        if late and first is not None:
            self._record(dict.fromkeys(late, peer_failed(first, self.ended[first].reason)))

    def _record(self, errors: Mapping[int, ErrorInfo], *, skipped: bool = False) -> None:
        """Records the hosts in `errors`, which could not do it themselves."""
        for host, error in errors.items():
            started = None if self.group is None else self.group.ready[host]
            ran_on = self._host.provenance(host) if started is None else started.provenance
            task = self.tasks[host]
            record = task.record(
                status="skipped" if skipped else "failed",
                error=error,
                started_at=self._started_at,
                duration_s=time.monotonic() - self._clock,
                samples=() if self.group is None else tuple(self.group.measured.get(host, ())),
                provenance=task.provenance(ran_on, str(self._run.root), None),
                worker="" if started is None else started.worker,
            )
            _write(self._run, record)


def check_there(run: RunDirectory) -> None:
    """Checks that a run directory can still take records."""
    try:
        run.check_there()
    except OSError as failure:
        raise CannotRecord(str(failure)) from None


def _write(run: RunDirectory, record: Record) -> None:
    check_there(run)
    try:
        with contextlib.suppress(AlreadyRecorded):  # it came to its end after all
            run.write_record(record)
    except (OSError, LeaseLost) as failure:
        raise CannotRecord(f"cannot write the record: {failure}") from None
