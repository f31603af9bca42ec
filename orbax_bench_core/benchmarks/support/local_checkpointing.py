"""Two-tier checkpointing: options, directories and managers for local and persistent storage."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from orbax_bench_core.authoring import Sweepable, TestContext
from orbax_bench_core.benchmarks.support.needs import (
    require_arrays,
    require_processes,
    require_replicas,
    require_unsharded_replicas,
)
from orbax_bench_core.benchmarks.support.options import BoundedOptions, await_all_hosts
from orbax_bench_core.benchmarks.support.v0 import restore_target
from orbax_bench_core.files import absolute, remove_tree

if TYPE_CHECKING:
    import jax
    from etils import epath

    from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class LocalCheckpointingOptions(BoundedOptions):
    """Options of a benchmark that saves to local disks and to persistent storage.

    Attributes:
        persistent_save_interval_steps: Save to persistent storage every so many steps.
        persistent_max_to_keep: How many of its latest checkpoints to keep.
        local_save_interval_steps: Save to the local disks every so many steps.
        local_max_to_keep: How many of their latest checkpoints to keep.
        replica_axis_index: Index of the mesh axis along which replicas lie.
        train_steps: How many steps to offer to the manager.
    """

    persistent_save_interval_steps: Sweepable[int] = 5
    persistent_max_to_keep: Sweepable[int] = 5
    local_save_interval_steps: Sweepable[int] = 2
    local_max_to_keep: Sweepable[int] = 2
    replica_axis_index: Sweepable[int] = 0
    train_steps: Sweepable[int] = 10

    least = {
        "persistent_save_interval_steps": 1,
        "persistent_max_to_keep": 1,
        "local_save_interval_steps": 1,
        "local_max_to_keep": 1,
        "train_steps": 1,
    }

    def tiers(self, kinds: Any) -> dict[str, Any]:
        """Returns these options as fields of the options of a manager of Orbax."""
        return {
            "local": kinds.LocalCheckpointOptions(
                save_interval_steps=self.local_save_interval_steps,
                max_to_keep=self.local_max_to_keep,
            ),
            "persistent": kinds.PersistentCheckpointOptions(
                save_interval_steps=self.persistent_save_interval_steps,
                max_to_keep=self.persistent_max_to_keep,
            ),
            "replica_axis_index": self.replica_axis_index,
        }


def require_two_tiers(
    context: TestContext, axis: int, benchmark: str
) -> tuple[jax.sharding.Mesh, Any]:
    """Returns the mesh and the checkpoint data of a repeat that can be saved in two tiers."""
    mesh, tree = (
        require_replicas(context, axis, benchmark),
        require_arrays(context, benchmark),
    )
    require_processes(2, benchmark)
    require_unsharded_replicas(tree, mesh, axis, benchmark)
    return mesh, tree


def make_directories(context: TestContext, name: str) -> tuple[epath.Path, epath.Path]:
    """Makes an empty directory of this host and one of all hosts; every process must call."""
    import jax

    host = f"process_{jax.process_index()}"
    # Orbax wants paths in full, and a --local-directory may be relative.
    local = absolute(str(context.local_path or context.path / "local")) / name / host
    persistent = context.path / "persistent" / name
    remove_tree(local, local.parent.parent)  # what a repeat that failed had left
    local.mkdir(parents=True)
    if jax.process_index() == 0:
        persistent.mkdir(parents=True)
    await_all_hosts(f"directories of {name}")
    return local, persistent


def open_two_tier_manager(
    metrics: Metrics,
    context: TestContext,
    kind: Any,
    directories: tuple[epath.Path, epath.Path],
    options: Any,
) -> contextlib.closing[Any]:
    """Opens a manager of two tiers, to be closed whatever happens; measures how long that takes."""
    with metrics.measure("create_checkpoint_manager"):
        manager = kind(
            local_directory=directories[0],
            persistent_directory=directories[1],
            global_mesh=context.mesh,
            abstract_state=restore_target(context.pytree),
            options=options,
        )
    return contextlib.closing(manager)


@contextlib.contextmanager
def hosts_in_step() -> Iterator[None]:
    """Has the hosts agree again on what Orbax keeps per process, once the context ends.

    Orbax numbers its saves in each process, and gives the signals of a save a prefix, to which
    managers that only some of the hosts have add a word for good. With different numbers or
    prefixes every later save in these processes, of whatever benchmark, waits for signals that
    never come. Every process must enter and leave.
    """
    import numpy as np
    from jax.experimental import multihost_utils
    from orbax.checkpoint._src.futures.future import AwaitableSignalsContract as Contract
    from orbax.checkpoint._src.futures.synchronization import OperationIdGenerator as Counter

    prefix = Contract.awaitable_signals_contract_prefix
    try:
        yield
    finally:
        Contract.awaitable_signals_contract_prefix = prefix
    own = int(Counter.get_current_operation_id())
    most = int(np.max(multihost_utils.process_allgather(np.int32(own))))
    for _ in range(own, most):
        Counter.next_operation_id()
