"""Outcomes of tries that did not pass: unmet needs, failed peers, warm-ups that ended."""

from __future__ import annotations

from collections.abc import Mapping

from orbax_bench_core.execute.group import WorkerGroup
from orbax_bench_core.records import PEER_FAILED, Attempt, ErrorInfo, Repeat
from orbax_bench_core.worker import Done


def began_nothing(group: WorkerGroup, ended: Mapping[int, Done], num_hosts: int) -> bool:
    """Returns whether every host lacks something that the point needs, and measured nothing.

    `ended` has the hosts that ended by themselves; `group.measured` is that of the try.
    """
    unmet = [done for done in ended.values() if done.unmet]
    return len(unmet) == num_hosts and not any(group.measured.values())


def peer_failed(host: int, reason: str) -> ErrorInfo:
    """Describes the end of a host that the failure of another one, `host`, has caused."""
    return ErrorInfo(type=PEER_FAILED, message=f"ended because host {host} failed: {reason}")


def attempts_so_far(
    earlier: Repeat, errors: Mapping[int, ErrorInfo]
) -> Mapping[int, tuple[Attempt, ...]]:
    """Returns what was tried in vain on each host before a repeat is tried again.

    A host that passed, and is to measure again because another one failed, has tried in vain too.
    """
    failed = {host: record.error for host, record in earlier.records.items() if record.error}
    first = min(failed, key=lambda host: failed[host].type == PEER_FAILED, default=None)
    peer = None if first is None else peer_failed(first, failed[first].message)
    return {
        host: record.as_attempt(errors.get(host, peer)) for host, record in earlier.records.items()
    }


class WarmUpEnded(Exception):
    """A warm-up did not pass, so that its repeat will not be run.

    Attributes:
        ended: How each host ended that ended by itself.
    """

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

    def errors(self, num_hosts: int) -> dict[int, ErrorInfo]:
        """Returns what to record for each host."""
        own = self._done.error or ErrorInfo(type="Unknown", message="no reason was given")
        if not self.skipped and not self._done.unmet:
            own = own.model_copy(update={"message": f"in a warm-up: {own.message}"})
        peer = peer_failed(self._host, own.message)

        def same(host: int) -> bool:
            ended = self.ended.get(host)
            return self.skipped or (ended is not None and ended.reason == self._done.reason)

        return {host: own if same(host) else peer for host in range(num_hosts)}
