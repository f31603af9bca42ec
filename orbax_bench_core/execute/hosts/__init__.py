"""Hosts on which workers run."""

from orbax_bench_core.execute.hosts.host import Host, Inbox, WorkerDied, WorkerHandle
from orbax_bench_core.execute.hosts.local import LocalHost

__all__ = [
    "Host",
    "Inbox",
    "LocalHost",
    "WorkerDied",
    "WorkerHandle",
]
