"""Setups and tasks of a worker, one JSON object a line: what the orchestrator tells it."""

import signal
from typing import Any, Final

from orbax_bench_core import records
from orbax_bench_core.config import Arm
from orbax_bench_core.files import ResultModel
from orbax_bench_core.interface import Drill
from orbax_bench_core.provenance import UNKNOWN, storage_provenance
from orbax_bench_core.sweep import SweepEntry, SweepPoint, side

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
            store_troubles=records.StoreTrouble.all_of(found.get("samples", ())),
            **found,
        )

    def provenance(
        self, host: dict[str, Any], root: str, state: records.State | None
    ) -> dict[str, Any]:
        """Returns the provenance for the record of this task, from that of `host`.

        Args:
            host: What runs, and on what, as the worker said when it was ready.
            root: The run directory.
            state: Size and digest of what was saved and loaded; None if the repeat never got that
                far.
        """
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
