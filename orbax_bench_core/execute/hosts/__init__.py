"""Hosts on which workers run."""

from orbax_bench_core.execute.hosts.local import Inbox, LocalWorker, WorkerDied

__all__ = [
    "Inbox",
    "LocalWorker",
    "WorkerDied",
]
