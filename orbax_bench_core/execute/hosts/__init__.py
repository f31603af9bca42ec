"""Hosts on which workers run: this machine, and those whose agents have joined."""

from orbax_bench_core.execute.hosts.agent import Agent
from orbax_bench_core.execute.hosts.head import HOST_WAIT_S, ClusterHosts, Host, WorkerHandle
from orbax_bench_core.execute.hosts.host import (
    HostLost,
    HostsMissing,
    Inbox,
    Output,
    Unmade,
    WorkerDied,
    stop_all,
)
from orbax_bench_core.execute.hosts.local import LocalHost
from orbax_bench_core.execute.hosts.remote import RemoteWorker
from orbax_bench_core.execute.hosts.rendezvous import (
    MOST_GROUPS,
    PortRange,
    Rendezvous,
    equal_everywhere,
    given_token,
)
from orbax_bench_core.execute.hosts.suite_archive import Shipped, SuiteArchive, pack, unshipped
from orbax_bench_core.execute.hosts.wire import Contact

__all__ = [
    "HOST_WAIT_S",
    "MOST_GROUPS",
    "Agent",
    "ClusterHosts",
    "Contact",
    "Host",
    "HostLost",
    "HostsMissing",
    "Inbox",
    "LocalHost",
    "Output",
    "PortRange",
    "RemoteWorker",
    "Rendezvous",
    "Shipped",
    "SuiteArchive",
    "Unmade",
    "WorkerDied",
    "WorkerHandle",
    "equal_everywhere",
    "given_token",
    "pack",
    "stop_all",
    "unshipped",
]
