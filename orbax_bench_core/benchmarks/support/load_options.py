"""Options of the benchmarks that load an existing checkpoint, and digests kept between runs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core.authoring import Sweepable, TestContext
from orbax_bench_core.benchmarks.support.existing import Reference, verify
from orbax_bench_core.benchmarks.support.options import (
    MeasuringOptions,
    await_all_hosts,
    gib_to_bytes,
)
from orbax_bench_core.benchmarks.support.replicas import REPLICA, check_broadcast, check_replicas
from orbax_bench_core.files import absolute

if TYPE_CHECKING:
    from orbax_bench_core.state import Digest


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadOptions(MeasuringOptions):
    """Options of a load.

    Attributes:
        checkpoint_path: The checkpoint to load; null takes that of the checkpoint_config, and saves
            data that were generated first.
        sharding_config_path: JSON file with the target sharding of each leaf, over all devices;
            null replicates every array on all devices.
        capture_digests_path: Directory in which to keep the digest of what was loaded. In the
            checkpoint's own directory it is what later loads are compared with.
        reference_digests_path: Directory with such a digest, to compare with what is loaded; give
            this or capture_digests_path.
        use_load_and_broadcast: Load on one replica and broadcast to the others.
        restore_concurrent_gb: Most data in flight while loading, in GiB; null sets no limit.
    """

    checkpoint_path: Sweepable[str | None] = None
    sharding_config_path: Sweepable[str | None] = None
    capture_digests_path: str | None = None
    reference_digests_path: str | None = None
    use_load_and_broadcast: Sweepable[bool] = False
    restore_concurrent_gb: Sweepable[float | None] = None

    def __post_init__(self) -> None:
        """Refuses to write and to read digests at once."""
        if self.capture_digests_path is not None and self.reference_digests_path is not None:
            raise ValueError("give capture_digests_path or reference_digests_path, not both")

    @property
    def read_concurrent_bytes(self) -> int | None:
        """`restore_concurrent_gb` in bytes."""
        return gib_to_bytes(self.restore_concurrent_gb)

    def target(self, reference: Reference) -> Any:
        """Returns what to hand to `load`."""
        import jax
        import numpy as np
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        file, devices = self.sharding_config_path, jax.devices()
        if file is not None:
            targets = reference.targets(file, devices)
        else:
            # To broadcast, Orbax wants replicas that are whole processes, where there are several.
            replicas = jax.process_count() if jax.process_count() > 1 else len(devices)
            mesh = Mesh(np.array(devices).reshape(replicas, -1), (REPLICA, "data"))
            everywhere = NamedSharding(mesh, PartitionSpec())
            targets = {
                name: jax.ShapeDtypeStruct(tuple(leaf.shape), leaf.dtype, sharding=everywhere)
                for name, leaf in reference.arrays.items()
            }
        if self.use_load_and_broadcast:
            check_broadcast(targets)
        return reference.tree(targets)

    def check(self, context: TestContext, reference: Reference, restored: Any) -> None:
        """Compares what was loaded, and keeps its digest; call it outside any measured block.

        It is compared first: a load that is not what was recorded replaces no digest, and none is
        compared with what it has written itself.

        Raises:
            StateError: There is no digest to compare with.
            VerificationError: A value, dtype, shape or leaf differs.
        """
        from orbax_bench_core.state import digest

        if self.use_load_and_broadcast and context.verifier is not None:
            check_replicas(restored)
        # Verification may delete what was loaded.
        found = None if self.capture_digests_path is None else digest(restored)
        folder = self.reference_digests_path
        verify(context, reference, restored, None if folder is None else captured(folder))
        if self.capture_digests_path is not None and found is not None:
            await_all_hosts("capture_digests")
            capture(self.capture_digests_path, found)


def capture(directory: str, found: Digest) -> None:
    """Writes the digest of a tree, one file for all hosts: it does not depend on the layout."""
    from orbax_bench_core.state import record_digest

    record_digest(absolute(directory), found)


def captured(directory: str) -> Digest:
    """The digest that `capture` wrote, to verify a load on any layout and number of hosts."""
    from orbax_bench_core.state import DIGESTS_FILE, StateError, recorded_digest

    found = recorded_digest(absolute(directory))
    if found is None:
        raise StateError(
            f"reference_digests_path {directory!r} holds no {DIGESTS_FILE}; run once with "
            "capture_digests_path to write it"
        )
    return found
