"""Execution of repeats: sessions, workers on their hosts, schedule, and the measuring lock.

Nothing here imports JAX: the processes that do are workers.
"""

from orbax_bench_core.execute.cluster import (
    HEAD_PORT,
    NOTIFY,
    NOTIFY_STATE,
    TOKEN,
    Cluster,
    detect_cluster,
    without_cluster,
)
from orbax_bench_core.execute.drill import Kill
from orbax_bench_core.execute.group_wait import CannotRecord
from orbax_bench_core.execute.hosts import (
    HOST_WAIT_S,
    Host,
    HostsMissing,
    LocalHost,
    Output,
    PortRange,
    Shipped,
    SuiteArchive,
    equal_everywhere,
    pack,
    unshipped,
)
from orbax_bench_core.execute.isolation import LOCK_FILE, measuring_lock
from orbax_bench_core.execute.placement import ExpectedDevices
from orbax_bench_core.execute.schedule import CommonFailure, run_pairs, run_points, run_until
from orbax_bench_core.execute.session import (
    DEFAULTS,
    Event,
    Progress,
    Retry,
    RunSettings,
    Say,
    Session,
    Watcher,
    silent,
    to_stderr,
)
from orbax_bench_core.execute.together import on_hosts, refuse_several_hosts, serve

__all__ = [
    "DEFAULTS",
    "HEAD_PORT",
    "HOST_WAIT_S",
    "LOCK_FILE",
    "NOTIFY",
    "NOTIFY_STATE",
    "TOKEN",
    "CannotRecord",
    "Cluster",
    "CommonFailure",
    "Event",
    "ExpectedDevices",
    "Host",
    "HostsMissing",
    "Kill",
    "LocalHost",
    "Output",
    "PortRange",
    "Progress",
    "Retry",
    "RunSettings",
    "Say",
    "Session",
    "Shipped",
    "SuiteArchive",
    "Watcher",
    "detect_cluster",
    "equal_everywhere",
    "measuring_lock",
    "on_hosts",
    "pack",
    "refuse_several_hosts",
    "run_pairs",
    "run_points",
    "run_until",
    "serve",
    "silent",
    "to_stderr",
    "unshipped",
    "without_cluster",
]
