"""Hosts on which workers run: this machine, and those whose agents have joined."""

from orbax_bench_core.execute.hosts.agent import Agent as Agent
from orbax_bench_core.execute.hosts.head import HOST_WAIT_S as HOST_WAIT_S
from orbax_bench_core.execute.hosts.head import ClusterHosts as ClusterHosts
from orbax_bench_core.execute.hosts.head import Host as Host
from orbax_bench_core.execute.hosts.head import WorkerHandle as WorkerHandle
from orbax_bench_core.execute.hosts.host import HostLost as HostLost
from orbax_bench_core.execute.hosts.host import HostsMissing as HostsMissing
from orbax_bench_core.execute.hosts.host import Inbox as Inbox
from orbax_bench_core.execute.hosts.host import Output as Output
from orbax_bench_core.execute.hosts.host import Unmade as Unmade
from orbax_bench_core.execute.hosts.host import WorkerDied as WorkerDied
from orbax_bench_core.execute.hosts.host import stop_all as stop_all
from orbax_bench_core.execute.hosts.join_files import MOST_GROUPS as MOST_GROUPS
from orbax_bench_core.execute.hosts.join_files import ClusterRun as ClusterRun
from orbax_bench_core.execute.hosts.join_files import JoinFiles as JoinFiles
from orbax_bench_core.execute.hosts.join_files import PortRange as PortRange
from orbax_bench_core.execute.hosts.join_files import equal_everywhere as equal_everywhere
from orbax_bench_core.execute.hosts.join_files import given_token as given_token
from orbax_bench_core.execute.hosts.local import LocalHost as LocalHost
from orbax_bench_core.execute.hosts.remote import RemoteWorker as RemoteWorker
from orbax_bench_core.execute.hosts.suite_archive import Shipped as Shipped
from orbax_bench_core.execute.hosts.suite_archive import SuiteArchive as SuiteArchive
from orbax_bench_core.execute.hosts.suite_archive import pack as pack
from orbax_bench_core.execute.hosts.suite_archive import unshipped as unshipped
from orbax_bench_core.execute.hosts.wire import ContactTimes as ContactTimes
