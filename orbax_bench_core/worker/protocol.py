"""Protocol between orchestrator and worker: setups, tasks and events, one JSON object a line."""

import signal
from typing import Annotated, Any, Final, Literal

import pydantic

from orbax_bench_core import records
from orbax_bench_core.config import Arm, HostMemory
from orbax_bench_core.files import ResultModel
from orbax_bench_core.interface import Drill
from orbax_bench_core.measure import Sample
from orbax_bench_core.provenance import UNKNOWN, storage_provenance
from orbax_bench_core.sweep import Placement, SweepEntry, SweepPoint, side
from orbax_bench_core.worker.runtime import MAX_SIMULATED_DEVICES

STACKS_SIGNAL: Final = signal.SIGUSR1
"""Has a worker print the stacks of its threads."""


class WorkerSetup(ResultModel):
    """Setup of a worker; points that agree on it share a warm worker."""

    root: str  # the run directory
    x64: bool  # whether JAX has 64-bit types
    # devices of this worker to simulate when JAX runs on the CPU and nobody has set a number
    num_devices: int
    process_id: int = 0  # index of this worker among those that JAX joins
    num_processes: int = 1  # how many workers JAX joins
    # address at which worker 0 coordinates them; None for a worker on its own
    coordinator: str | None = None
    # scratch directory on the local disk, for benchmarks that use one
    local_directory: str | None = None
    keep_data: bool = False  # whether the checkpoint data of each repeat stays
    # process id of the orchestrator, with which the worker ends; None if nobody waits for it
    parent: int | None = None
    # name of the environment whose Python its machine has started; empty for the command's own
    environment: str = ""
    # what that Python called itself before; empty if it was not asked
    interpreter: str = ""
    # whether blocks also read the state of the process, and nothing that is read leaks
    soak: bool = False


class Task(ResultModel):
    """One attempt at one repeat. What a record has by the same name is explained there."""

    run_id: str
    suite: str
    config_hash: str  # identity of the suite
    point: SweepEntry
    repeat: int
    warmup: bool
    traced: bool = False
    arm: Arm | None = None
    block: int | None = None
    life: int | None = None
    host: int = 0
    num_hosts: int = 1
    code: dict[str, Any] = {}  # revisions of the benchmark class and of the suite file
    verify: bool  # whether restored values are compared with what was saved
    attempts: tuple[records.Attempt, ...] = ()
    fence: str = ""  # lease under which it is measured; empty if nobody holds one
    # seal of the record of an earlier attempt that may be replaced although it passed
    replaces: str = ""
    # which life of a recovery drill it is; None outside one. The first trains until it is killed,
    # and leaves a record only if it fails before.
    drill: Drill | None = None

    @property
    def measured(self) -> SweepPoint:
        """The point to measure: one side of a pair, or the task's point itself."""
        return side(self.point, self.arm)

    def record(self, **found: Any) -> records.Record:
        """Returns the record of this task; `found` has the fields that the task does not know."""
        return records.Record(
            **{name: getattr(self, name) for name in _RECORDED},
            point_id=self.point.id,
            point_name=self.point.name,
            store_troubles=records.troubles_of(found.get("samples", ())),
            **found,
        )

    def provenance(
        self, host: dict[str, Any], root: str, state: records.State | None
    ) -> dict[str, Any]:
        """Returns the provenance for the record of this task, from that of `host`."""
        return {
            "devices": UNKNOWN,
            **host,
            "code": self.code,
            "config_hash": self.config_hash,
            "seed": self.measured.checkpoint.random_seed,
            "checkpoint_digest": UNKNOWN if state is None else state.fingerprint,
            "storage": storage_provenance(self.measured.storage or root),
        }


_RECORDED: Final = tuple(name for name in Task.model_fields if name in records.Record.model_fields)


class Ready(ResultModel):
    """The worker has started JAX."""

    event: Literal["ready"] = "ready"
    platform: str  # `cpu`, `gpu` or `tpu`
    device_count: int  # number of devices over all processes
    fixed: bool  # whether the devices are what this machine has, rather than what was asked for
    provenance: dict[str, Any]  # what runs, and on what
    worker: str = ""  # id of this process, unique on all machines; see `worker_id`
    processes: int  # how many processes JAX has joined
    host_memory: HostMemory  # what its allocator does with freed memory, by its own environment
    x64: bool  # whether JAX has 64-bit types
    environment: str = ""  # name of the environment that its machine started for it
    interpreter: str  # the Python that it runs in
    # the Python of that environment, as it called itself when it was checked
    interpreter_asked: str

    def differences(self, asked: Placement) -> str:
        """Returns the requested options that are not in effect, on one line; empty if all are."""
        # Devices that a machine has are checked when a point asks for them.
        own = "that of the command"
        has = {
            **({} if self.fixed else {"num_devices": self.device_count}),
            "processes": self.processes,
            "environment": self.environment or own,
            "interpreter": self.interpreter,
            "host_memory": self.host_memory,
            "x64": self.x64,
        }
        wanted = {**asked._asdict(), "interpreter": self.interpreter_asked or self.interpreter}
        wanted["environment"] = asked.environment or own
        if not self.fixed:  # each process has as many as the one that needs most
            share = min(-(-asked.num_devices // asked.processes), MAX_SIMULATED_DEVICES)
            wanted["num_devices"] = share * asked.processes
        return "; ".join(
            f"the point needs {name}={wanted[name]}, and its worker has {name}={value}"
            for name, value in has.items()
            if value != wanted[name]
        )


class Measured(ResultModel):
    """An operation has ended; its samples are safe even if the worker dies now."""

    event: Literal["measured"] = "measured"
    samples: tuple[Sample, ...]


class Done(ResultModel):
    """A task has ended and its record is in the run directory, unless a warm-up was skipped."""

    event: Literal["done"] = "done"
    status: records.Status  # how it ended
    # why it was skipped or failed, with its traceback; None when it passed
    error: records.ErrorInfo | None = None

    @property
    def reason(self) -> str:
        """Why it was skipped or failed, on one line; empty when it passed."""
        return "" if self.error is None else self.error.said

    @property
    def unmet(self) -> bool:
        """Whether the benchmark said, before it began, what it lacks."""
        return self.error is not None and self.error.type == records.UNMET_NEED


class Unrecorded(ResultModel):
    """A task has ended, but its record could not be written; `number` is the system's error."""

    event: Literal["unrecorded"] = "unrecorded"
    reason: str
    number: int | None = None


Event = Annotated[Ready | Measured | Done | Unrecorded, pydantic.Field(discriminator="event")]
EVENT: pydantic.TypeAdapter[Ready | Measured | Done | Unrecorded] = pydantic.TypeAdapter(Event)


def event_of(line: bytes) -> Ready | Measured | Done | Unrecorded | None:
    """Returns the event that a worker has sent; None for a line that is none."""
    # Whatever holds the descriptor of events may write to it: a library has been seen to print a
    # bare number, which is valid JSON.
    try:
        return EVENT.validate_json(line)
    except pydantic.ValidationError:
        return None
