"""Events of a worker, one JSON object a line: what it tells the orchestrator."""

from typing import Annotated, Any, Literal

import pydantic

from orbax_bench_core import records
from orbax_bench_core.config import HostMemory
from orbax_bench_core.files import ResultModel
from orbax_bench_core.measure import Sample
from orbax_bench_core.sweep import Placement
from orbax_bench_core.worker.runtime import MAX_SIMULATED_DEVICES


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
        return self.error is not None and self.error.unmet


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
