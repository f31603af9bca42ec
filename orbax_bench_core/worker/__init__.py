"""The process that measures, in any environment: its protocol, devices and page cache."""

from orbax_bench_core.worker.events import EVENT as EVENT
from orbax_bench_core.worker.events import Done as Done
from orbax_bench_core.worker.events import Measured as Measured
from orbax_bench_core.worker.events import Ready as Ready
from orbax_bench_core.worker.events import Unrecorded as Unrecorded
from orbax_bench_core.worker.events import event_of as event_of
from orbax_bench_core.worker.process import Worker as Worker
from orbax_bench_core.worker.process import die_with_parent as die_with_parent
from orbax_bench_core.worker.process import leave as leave
from orbax_bench_core.worker.protocol import STACKS_SIGNAL as STACKS_SIGNAL
from orbax_bench_core.worker.protocol import Task as Task
from orbax_bench_core.worker.protocol import WorkerSetup as WorkerSetup
from orbax_bench_core.worker.runtime import collect_for_the_last_time as collect_for_the_last_time
from orbax_bench_core.worker.runtime import importing as importing
from orbax_bench_core.worker.runtime import simulate_devices as simulate_devices
