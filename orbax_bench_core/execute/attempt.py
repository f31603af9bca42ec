"""Attempt at a repeat: which repeat it is, how it ended, and records of hosts that could not."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from orbax_bench_core import records, sweep
from orbax_bench_core.config import Arm
from orbax_bench_core.execute.group import WorkerGroup
from orbax_bench_core.execute.group_wait import CannotRecord, HostFailed
from orbax_bench_core.execute.hosts import Host
from orbax_bench_core.execute.session import Progress, Retry
from orbax_bench_core.leases import LeaseLost
from orbax_bench_core.worker import Done, Task


class RepeatKey(NamedTuple):
    """A repeat that is to be made; its fields are those of `OfRepeat`."""

    point: sweep.SweepEntry
    repeat: int
    arm: Arm | None = None
    block: int | None = None
    life: int | None = None

    @property
    def measured(self) -> sweep.SweepPoint:
        """The point, or that of the side."""
        return sweep.side(self.point, self.arm)

    def progress(self, **fields: Any) -> Progress:
        """Returns an event of its progress; `fields` are those of `Progress`."""
        return Progress(**{**self._which(), **fields})

    def retry(self, reason: str, left: int) -> Retry:
        """Returns the event that precedes another attempt."""
        return Retry(**self._which(), reason=reason, left=left)

    def _which(self) -> dict[str, Any]:
        which = {"point": self.point, "index": self.repeat, "arm": self.arm}
        return {**which, "block": self.block, "life": self.life}


class RepeatAttempt:
    """One attempt at a repeat, which begins when this is made."""

    def __init__(self, run: records.RunDirectory, host: Host, tasks: Sequence[Task]) -> None:
        self.tasks = tasks  # what each host is to do
        self.group: WorkerGroup | None = None  # the workers that do it; None before they are there
        self.ended: dict[int, Done] = {}  # how each host ended that ended by itself
        # the errors of hosts that a failure has ended
        self.errors: dict[int, records.ErrorInfo] = {}
        self._run, self._host = run, host
        self._started_at, self._clock = datetime.datetime.now(datetime.UTC), time.monotonic()

    @property
    def began(self) -> bool:
        """Whether some host measured something, or failed for another reason than an unmet need."""
        unmet = [done for done in self.ended.values() if done.unmet]
        return (
            self.group is None or len(unmet) < len(self.tasks) or any(self.group.measured.values())
        )

    def record_warm_up(self, warm_up: WarmUpEnded) -> None:
        """Records that a warm-up ended it."""
        self.ended = warm_up.ended
        self._record(warm_up.errors(len(self.tasks)), skipped=warm_up.skipped)

    def record_failure(self, failure: HostFailed) -> None:
        """Records that a host failed, and how the others were ended for that.

        Raises:
            CannotRecord: The run directory takes no records any more.
        """
        own = records.ErrorInfo(type=failure.kind, message=failure.message, traceback=failure.tail)
        peer = peer_failed(failure.host, failure.message)
        # What is known of a host itself outranks that it was ended for another.
        peers = dict.fromkeys(range(len(self.tasks)), peer)
        self.errors = {**peers, **failure.others, failure.host: own}
        self._record(self.errors)

    def record_late_hosts(self) -> None:
        """Records the hosts that had not ended when another one failed.

        Nothing is recorded where every host has ended, or none of them failed by itself.

        Raises:
            CannotRecord: The run directory takes no records any more.
        """
        late = set(range(len(self.tasks))) - self.ended.keys()
        first = next((host for host, done in self.ended.items() if done.status == "failed"), None)
        if late and first is not None:
            self._record(dict.fromkeys(late, peer_failed(first, self.ended[first].reason)))

    def _record(self, errors: Mapping[int, records.ErrorInfo], *, skipped: bool = False) -> None:
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
            check_there(self._run)
            try:
                with contextlib.suppress(records.AlreadyRecorded):  # it came to its end after all
                    self._run.write_record(record)
            except (OSError, LeaseLost) as failure:
                raise CannotRecord(f"cannot write the record: {failure}") from None


def check_there(run: records.RunDirectory) -> None:
    """Checks that a run directory can still take records.

    Raises:
        CannotRecord: It was renamed or deleted, or its storage does not answer.
    """
    try:
        run.check_there()
    except OSError as failure:
        raise CannotRecord(str(failure)) from None


def peer_failed(host: int, reason: str) -> records.ErrorInfo:
    """Describes the end of a host that the failure of another one, `host`, has caused."""
    return records.ErrorInfo(
        type=records.PEER_FAILED, message=f"ended because host {host} failed: {reason}"
    )


def attempts_so_far(
    earlier: records.Repeat, errors: Mapping[int, records.ErrorInfo]
) -> Mapping[int, tuple[records.Attempt, ...]]:
    """Returns the failed attempts of each host before a repeat is tried again.

    Args:
        earlier: The repeat as it was recorded last.
        errors: Errors of hosts that a failure has ended, by host, where their records have none.

    Returns:
        All failed attempts by host, the oldest first, for the record of the next one.
    """
    # A host that passed, and is to measure again because another one failed, has attempts too.
    failed = {host: record.error for host, record in earlier.records.items() if record.error}
    # The host that failed by itself, if any did: the others were ended for it.
    first = min(failed, key=lambda host: failed[host].type == records.PEER_FAILED, default=None)
    peer = None if first is None else peer_failed(first, failed[first].message)
    return {
        host: record.as_attempt(errors.get(host, peer)) for host, record in earlier.records.items()
    }


class WarmUpEnded(Exception):
    """A warm-up did not pass, so that its repeat will not be run."""

    def __init__(self, ended: dict[int, Done]) -> None:
        super().__init__()
        self.ended = ended
        self._host, self._done = next(
            (host, done) for host, done in ended.items() if done.status != "passed"
        )

    @property
    def skipped(self) -> bool:
        """Whether the point cannot run here at all, rather than having failed."""
        return self._done.status == "skipped"

    def errors(self, num_hosts: int) -> dict[int, records.ErrorInfo]:
        """Returns the error to record for each host.

        A point that cannot run here is skipped on all hosts for one reason. Of a failure, hosts
        that ended for the same reason have it as their own; the others were ended for it.
        """
        own = self._done.error or records.ErrorInfo(type="Unknown", message="no reason was given")
        if not self.skipped and not self._done.unmet:
            own = own.model_copy(update={"message": f"in a warm-up: {own.message}"})
        peer = peer_failed(self._host, own.message)

        def same(host: int) -> bool:
            ended = self.ended.get(host)
            return self.skipped or (ended is not None and ended.reason == self._done.reason)

        return {host: own if same(host) else peer for host in range(num_hosts)}
