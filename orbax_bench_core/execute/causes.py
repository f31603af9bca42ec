"""Causes of a failed group: what each host shows, and the host with which the failure began."""

from __future__ import annotations

import dataclasses
import enum
import re
import signal
from collections.abc import Mapping

from orbax_bench_core.execute.liveness import Judgement, Liveness

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
