"""Checkpoints to load: an existing one, or one that is saved first; their load and verification."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.benchmarks.support.needs import require_arrays_of_all
from orbax_bench_core.benchmarks.support.options import await_all_hosts, delete, delete_if_scarce
from orbax_bench_core.files import absolute
from orbax_bench_core.interface import UnmetNeed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax
    from etils import epath

    from orbax_bench_core.benchmarks.support.options import MeasuringOptions
    from orbax_bench_core.interface import TestContext
    from orbax_bench_core.inventory import Location
    from orbax_bench_core.measure import Metrics
    from orbax_bench_core.state import Digest

PyTree = Any


@dataclasses.dataclass(frozen=True)
class Reference:
    """A checkpoint to load: where it is, and its tree with a description of each array."""

    location: Location
    described: PyTree
    own: bool = False  # whether it was made for this repeat
    keys: frozenset[str] = frozenset()  # names of the arrays that hold the data of random keys

    @property
    def arrays(self) -> dict[str, Any]:
        """Shape and dtype of each array, by dotted path."""
        from orbax_bench_core.state import described_arrays

        return described_arrays(self.described)

    @property
    def num_bytes(self) -> int:
        """Bytes of all arrays, replicas once."""
        return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in self.arrays.values())

    @property
    def inventory_path(self) -> epath.Path | None:
        """What is to be listed beside the repeat: None where it lies under the repeat's `path`."""
        root, item = self.location.root, self.location.item
        return None if self.own else root / item if item else root

    def targets(
        self, sharding_path: str | None, devices: Sequence[jax.Device]
    ) -> dict[str, jax.ShapeDtypeStruct]:
        """Returns how each array is to be laid out: as a file says, or spread over devices.

        Args:
            sharding_path: A sharding file; None spreads every array over all devices.
            devices: The devices to load to.

        Returns:
            Shape, dtype and sharding of each array, by its dotted name.
        """
        from orbax_bench_core.state import load_targets

        return load_targets(self.described, sharding_path, devices, self.keys)

    def load(self, target: PyTree) -> PyTree:
        """Loads the checkpoint; its arrays are ready.

        Args:
            target: A tree of `jax.ShapeDtypeStruct` that says how each array is laid out.
        """
        import jax

        from orbax_bench_core.state import orbax_api

        loaded = orbax_api.load_item(self.location.root, self.location.item, target)
        return jax.block_until_ready(loaded)

    def begin_load(self, target: PyTree) -> Any:
        """Begins to load the checkpoint; `result()` of what it returns waits for it."""
        from orbax_bench_core.state import orbax_api

        return orbax_api.load_item_async(self.location.root, self.location.item, target)

    def drop(self) -> None:
        """Removes the checkpoint if it was made for this repeat; every process must call."""
        import jax

        await_all_hosts("drop_reference")
        if self.own and jax.process_index() == 0:
            self.location.root.rmtree()


def find_reference(
    context: TestContext,
    path: str | None,
    *,
    option: str,
    saving: contextlib.AbstractContextManager[Any],
) -> Reference:
    """Returns the checkpoint at a path or, without one, saves the repeat's data as one.

    Args:
        context: The repeat.
        path: A checkpoint; None takes the one that the repeat's data were loaded from, if any.
        option: Name of the option that gives the path, for the message.
        saving: Context in which the repeat's data are saved where there is no checkpoint.

    Raises:
        UnmetNeed: There is neither a path nor data to save, or several processes have data of their
            own each.
        StateError: There is no checkpoint at the path, or its save has not finished.
    """
    from orbax_bench_core.inventory import random_keys
    from orbax_bench_core.state import describe, locate, locate_whole, orbax_api

    if path is None and context.checkpoint is not None:
        path = context.checkpoint.path
    own = path is None
    if path is None:
        if context.pytree is None:
            raise UnmetNeed(
                f"there is nothing to load: give {option}, or a checkpoint_config to be saved first"
            )
        require_arrays_of_all(context, "a checkpoint that is saved first")
        path = str(context.path / "reference")
        with saving:
            orbax_api.save(context.path / "reference", context.pytree)
    location = locate(path) if own else locate_whole(path)
    return Reference(location, describe(path, location), own, random_keys(location))


def measure_load(
    metrics: Metrics,
    context: TestContext[MeasuringOptions],
    reference: Reference,
    target: PyTree,
    *,
    asynchronous: bool = False,
) -> PyTree:
    """Measures `load`, and `load_blocking` of one in the background; needs an active context.

    Args:
        metrics: Takes the samples.
        context: The repeat.
        reference: What is loaded; its bytes give the throughput.
        target: A tree of `jax.ShapeDtypeStruct` that says how each array is laid out.
        asynchronous: Whether Orbax loads in the background.

    Returns:
        The loaded tree; its arrays are ready.
    """
    import jax

    # The repeat's own data go first where what is loaded would not fit beside them.
    delete_if_scarce(context.pytree)
    context.prepare_load("load", reference.location.root)
    with metrics.measure("load", context.options.collectors, num_bytes=reference.num_bytes):
        if not asynchronous:
            return reference.load(target)
        with metrics.measure("load_blocking", context.options.collectors):
            begun = reference.begin_load(target)
        return jax.block_until_ready(begun.result())


def verify(
    context: TestContext, reference: Reference, restored: PyTree, known: Digest | None = None
) -> None:
    """Checks what was loaded; call it outside any measured block."""
    # Values must be those that this repeat saved. Of a checkpoint that was there before, they must
    # be those that were recorded with it, and those of the repeat's data where these were not
    # loaded from it too. Where neither is known, it is compared with another load, in another
    # layout, and the record says that this is no more than the checkpoint itself. That load is done
    # once per process and checkpoint; then the arrays of `restored` are deleted first, to make
    # room.
    from orbax_bench_core.state import digest, recorded_digest

    if context.verifier is None:
        return
    if known is None and not reference.own:
        known = recorded_digest(reference.location.root)
    found = digest(restored)
    if known is not None:
        context.verify(found, known, against="reference")
    if reference.own:
        context.verify(found, against="saved")
    elif context.pytree is not None and not _same_bytes(context, reference):
        context.verify(found, against="reference")
    elif known is None and context.pytree is not None:
        context.verify(found, against="itself")
    elif known is None:
        delete(restored)
        context.verify(found, _digest_by_another_load(reference), against="itself")


def _same_bytes(context: TestContext, reference: Reference) -> bool:
    """Says whether the repeat's data were loaded from the very checkpoint that is measured."""
    from orbax_bench_core.state import locate

    source = None if context.checkpoint is None else context.checkpoint.path
    if source is None:
        return False
    root = reference.location.root
    return absolute(source) == root or locate(source) == reference.location


_DIGESTS: Final[dict[Location, Digest]] = {}
"""Digests by another load, of each checkpoint that was loaded by this process."""


def _digest_by_another_load(reference: Reference) -> Digest:
    import jax

    from orbax_bench_core.state import digest, orbax_api, with_targets

    location = reference.location
    if location not in _DIGESTS:
        target = with_targets(reference.described, reference.targets(None, jax.devices()))
        # Options of the load that is verified do not suit this layout: a broadcast needs replicas.
        is_orbax = location.form == "orbax"
        with orbax_api.make_context() if is_orbax else contextlib.nullcontext():
            _DIGESTS[location] = digest(reference.load(target))
    return _DIGESTS[location]
