"""Execution of repeats: sessions, workers on their hosts, schedule, and the measuring lock.

Nothing here imports JAX: the processes that do are workers.
"""

from orbax_bench_core.execute.cluster import Cluster as Cluster
from orbax_bench_core.execute.cluster_sources import HEAD_PORT as HEAD_PORT
from orbax_bench_core.execute.common_failure import CommonFailure as CommonFailure
from orbax_bench_core.execute.detect import detect_cluster as detect_cluster
from orbax_bench_core.execute.drill import Kill as Kill
from orbax_bench_core.execute.group_wait import CannotRecord as CannotRecord
from orbax_bench_core.execute.hosts import HOST_WAIT_S as HOST_WAIT_S
from orbax_bench_core.execute.hosts import Host as Host
from orbax_bench_core.execute.hosts import HostsMissing as HostsMissing
from orbax_bench_core.execute.hosts import LocalHost as LocalHost
from orbax_bench_core.execute.hosts import Output as Output
from orbax_bench_core.execute.hosts import PortRange as PortRange
from orbax_bench_core.execute.hosts import Shipped as Shipped
from orbax_bench_core.execute.hosts import SuiteArchive as SuiteArchive
from orbax_bench_core.execute.hosts import pack as pack
from orbax_bench_core.execute.hosts import unshipped as unshipped
from orbax_bench_core.execute.lock import LOCK_FILE as LOCK_FILE
from orbax_bench_core.execute.lock import measuring_lock as measuring_lock
from orbax_bench_core.execute.machine_turns import SHARED_FOLDER as SHARED_FOLDER
from orbax_bench_core.execute.placement import ExpectedDevices as ExpectedDevices
from orbax_bench_core.execute.schedule import run_pairs as run_pairs
from orbax_bench_core.execute.schedule import run_points as run_points
from orbax_bench_core.execute.schedule import run_until as run_until
from orbax_bench_core.execute.session import DEFAULTS as DEFAULTS
from orbax_bench_core.execute.session import Event as Event
from orbax_bench_core.execute.session import Progress as Progress
from orbax_bench_core.execute.session import Retry as Retry
from orbax_bench_core.execute.session import RunSettings as RunSettings
from orbax_bench_core.execute.session import Say as Say
from orbax_bench_core.execute.session import Session as Session
from orbax_bench_core.execute.session import Watcher as Watcher
from orbax_bench_core.execute.session import silent as silent
from orbax_bench_core.execute.session import to_stderr as to_stderr
from orbax_bench_core.execute.together import on_hosts as on_hosts
from orbax_bench_core.execute.together import refuse_several_hosts as refuse_several_hosts
from orbax_bench_core.execute.together import serve as serve
from orbax_bench_core.execute.variables import NOTIFY as NOTIFY
from orbax_bench_core.execute.variables import NOTIFY_STATE as NOTIFY_STATE
from orbax_bench_core.execute.variables import TOKEN as TOKEN
from orbax_bench_core.execute.variables import without_cluster as without_cluster
