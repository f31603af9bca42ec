"""Context of one repeat: data, directories, options and devices that a benchmark is given."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol

from orbax_bench_core.config import CheckpointConfig
from orbax_bench_core.interface.generator import Options_co

if TYPE_CHECKING:
    import jax
    from etils import epath


Against = Literal["saved", "reference", "itself"]
"""Object of comparison of restored values: what this repeat saved, a reference that came from
elsewhere, or only another load of the same bytes, which proves nothing about those bytes."""


class UnmetNeed(Exception):
    """A benchmark cannot run here; the message is one line that names what it needs.

    The repeat fails and is not tried again. Raise it before anything is begun, and the worker goes
    on with the next repeat as if this one had never been.
    """


class Verifier(Protocol):
    """Compares what was restored with what it should be."""

    def __call__(self, restored: Any, expected: Any) -> None:
        """Raises `VerificationError` where they differ; see `TestContext.verify`."""


class Conditioner(Protocol):
    """Brings a machine into the conditions that a suite asks for."""

    @property
    def durable(self) -> bool:
        """Whether a save is also to be timed until it is on stable storage."""

    def make_durable(self, checkpoint: epath.Path) -> None:
        """Waits until a checkpoint is on stable storage."""

    def prepare_load(self, operation: str, checkpoint: epath.Path) -> None:
        """Sets the page cache before the load that `operation` measures."""


@dataclasses.dataclass
class TestContext(Generic[Options_co]):
    """One repeat of one sweep point.

    Attributes:
        pytree: The checkpoint data, made from `checkpoint_config`; None without one. It is reused
            by later repeats; a benchmark that deletes its arrays gets fresh ones next time.
        path: An empty working directory for this repeat.
        options: The options of this sweep point.
        mesh: The device mesh; None without `mesh_config`.
        repeat_index: Which repeat this is; None for a warm-up.
        local_path: A directory on the local disk, when `--local-directory` is given.
        output_dir: The run directory.
        name: Name of the sweep point, the same in every repeat.
        conditioner: Controls the page cache and durability; None when nothing is controlled.
        verifier: Compares restored values with expected ones; None when verification is off.
        drill: Which life of a recovery drill this is; None outside one.
        on_verified: Called after each comparison that agreed, with what was compared against.
        tracer: Says where the profiler trace of an operation goes; None when it is not traced.
        checkpoint: What `pytree` was made from; None when the context was made by hand.
    """

    __test__ = False  # not a test case, whatever pytest makes of the name

    pytree: Any
    path: epath.Path
    options: Options_co
    mesh: jax.sharding.Mesh | None = None
    repeat_index: int | None = None
    local_path: epath.Path | None = None
    output_dir: epath.Path | None = None
    name: str | None = None
    conditioner: Conditioner | None = None
    verifier: Verifier | None = None
    tracer: Callable[[str], epath.Path | None] | None = None
    checkpoint: CheckpointConfig | None = None
    on_verified: Callable[[Against], None] | None = None
    drill: Drill | None = None

    def verify(
        self, restored: Any, expected: Any = None, *, against: Against | None = None
    ) -> None:
        """Checks that restored values are as expected; call it outside any measured block.

        In a multi-process run every process must call. The record says against what values were
        compared; of several calls in one repeat, the weakest.

        Args:
            restored: A tree, on any sharding, or the `Digest` of one.
            expected: The tree that it should equal, with the same layout; None for `pytree`.
            against: What `expected` is: `saved` in this repeat, a `reference`, or `itself`, another
                load of the same bytes. None means `saved` for `pytree`, and else `reference`; a
                tree that is given as both is only compared with `itself`.

        Raises:
            VerificationError: A value, dtype, shape or leaf differs.
        """
        if self.verifier is not None:
            self.verifier(restored, expected)
            if self.on_verified is not None:
                same = restored is (self.pytree if expected is None else expected)
                told = against or ("saved" if expected is None else "reference")
                self.on_verified("itself" if same else told)

    @property
    def durable(self) -> bool:
        """Whether a save is also to be timed until it is on stable storage."""
        return self.conditioner is not None and self.conditioner.durable

    def make_durable(self, checkpoint: epath.Path) -> None:
        """Waits until a checkpoint is on stable storage; call it inside a measured block.

        Args:
            checkpoint: What was saved.
        """
        if self.conditioner is not None:
            self.conditioner.make_durable(checkpoint)

    def prepare_load(self, operation: str, checkpoint: epath.Path) -> None:
        """Brings the page cache into the state that the suite asks for; call it before a load.

        What share of the checkpoint is then resident is recorded with the operation.

            context.prepare_load("load", path)
            with metrics.measure("load"):
                restored = jax.block_until_ready(ocp.load(path, target))
            context.verify(restored)

        Args:
            operation: Name of the measured block that follows.
            checkpoint: What it will read.
        """
        if self.conditioner is not None:
            self.conditioner.prepare_load(operation, checkpoint)

    def trace_path(self, operation: str) -> epath.Path | None:
        """Returns where a trace of `operation` belongs, or None when it is not traced.

        Measured operations are traced without any call by the author; calling this takes the
        trace of the next block of that name into the author's own hands, and of no later one.

        Args:
            operation: Name of the operation.
        """
        return None if self.tracer is None else self.tracer(operation)


def optional_module(name: str, extra: str, needed_by: str) -> ModuleType:
    """Imports a module that an extra installs.

    Args:
        name: The module.
        extra: The extra of orbax-bench that brings it.
        needed_by: What needs it, for the message.

    Raises:
        UnmetNeed: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnmetNeed(
            f"{needed_by} needs {name}: pip install 'orbax-bench[{extra}]' ({error})"
        ) from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Killed:
    """End of the life before, by the clock of the process that watched it.

    Attributes:
        steps: Training steps that were done.
        notice_s: Seconds from the kill to the end of file on the pipe of the process that died.
        start_s: Seconds that new processes took from their start until JAX was up in all of them.
        peers_s: Seconds from the kill until a process that was not killed ended by itself; None
            where there was none, or it was not waited for.
    """

    steps: int
    notice_s: float
    start_s: float
    peers_s: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Drill:
    """One life of a repeat in which training is killed once.

    Attributes:
        killed: How the life before ended; None in the first one, which trains until it is killed.
    """

    killed: Killed | None = None
