"""The process that measures, in any environment: its protocol, devices and page cache."""

from orbax_bench_core.worker.devices import simulate_devices
from orbax_bench_core.worker.garbage import collect_for_the_last_time, importing
from orbax_bench_core.worker.process import die_with_parent, leave
from orbax_bench_core.worker.proofs import NOT_PROVED, NOT_TRIED, PROOFS
from orbax_bench_core.worker.protocol import (
    EVENT,
    STACKS_SIGNAL,
    Done,
    Measured,
    Ready,
    Task,
    Unrecorded,
    WorkerSetup,
    event_of,
)

__all__ = [
    "EVENT",
    "NOT_PROVED",
    "NOT_TRIED",
    "PROOFS",
    "STACKS_SIGNAL",
    "Done",
    "Measured",
    "Ready",
    "Task",
    "Unrecorded",
    "WorkerSetup",
    "collect_for_the_last_time",
    "die_with_parent",
    "event_of",
    "importing",
    "leave",
    "simulate_devices",
]
