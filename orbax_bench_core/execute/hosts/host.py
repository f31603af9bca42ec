"""Words of all hosts: what is said of their workers, their lines and their ends."""

import dataclasses
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

Unmade = dict[str, dict[int, str]]
"""Environments that could not be made: why, by name and then by host."""

Inbox = queue.SimpleQueue[tuple[int, bytes]]
"""Lines of a group of workers, each with the index of its worker; an empty one is its end."""


class WorkerDied(Exception):
    """The worker process has ended before it answered."""

    def __init__(self, message: str, tail: str) -> None:
        super().__init__(message)
        self.tail = tail  # the last lines that it printed


class HostLost(WorkerDied):
    """There is no contact any more with the host on which the worker runs; it may still run."""


class HostsMissing(Exception):
    """Hosts that a run needs have been lost and did not come back, so that it cannot go on."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Output:
    """Output of a process on a host, and its end."""

    host: int = 0
    code: int | None  # negative for a signal; None if it was not done in time
    out: str = ""
    err: str = ""  # standard error, or why nothing is known of it


def stop_all(stops: Sequence[Callable[[], None]]) -> None:
    """Ends workers or groups of them, all at once: each may take seconds, on dozens of hosts."""
    if stops:
        with ThreadPoolExecutor(len(stops), "stop") as threads:
            list(threads.map(lambda stop: stop(), stops))
