"""Option mixins, memory release and host synchronization for several benchmarks.

The mixins declare no dataclass fields. The order of an options class's fields is the order of its
sweep axes, so each class lists its own.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from orbax_bench_core.interface import LATER, BenchmarkOptions, Sweepable
from orbax_bench_core.measure import default_metrics

_GIB = 2**30


class CollectorOptions(BenchmarkOptions):
    """Mixin: the choice of collectors, for a class with the field `metric_tracemalloc_enabled`."""

    metric_tracemalloc_enabled: Sweepable[bool]

    @property
    def collectors(self) -> list[str]:
        """The collectors that measure each operation."""
        return default_metrics() + ["tracemalloc"] * bool(self.metric_tracemalloc_enabled)


class ReplicaFolderOptions(BenchmarkOptions):
    """Mixin: valid combinations of the three options on how replicas write an array."""

    use_ocdbt: Sweepable[bool]
    use_replica_parallel: Sweepable[bool]
    enable_replica_parallel_separate_folder: Sweepable[bool]

    def is_valid(self) -> bool:
        """Separate folders need parallel replicas, and OCDBT to merge them."""
        return not self.enable_replica_parallel_separate_folder or (
            self.use_replica_parallel and self.use_ocdbt
        )


class BoundedOptions(BenchmarkOptions):
    """Mixin: lower bounds of numbers, below which there is nothing to measure."""

    least: ClassVar[Mapping[str, int]]  # the smallest number that each option takes, by name

    def __post_init__(self) -> None:
        for name, least in self.least.items():
            value = getattr(self, name)
            if not isinstance(value, list) and not (isinstance(value, int) and value >= least):
                raise ValueError(f"{name} must be {least} or more, got {value!r}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasuringOptions(CollectorOptions):
    """Options of a benchmark that can also trace allocations.

    Attributes:
        metric_tracemalloc_enabled: Also trace Python allocations, which slows the operation down.
    """

    metric_tracemalloc_enabled: Sweepable[bool] = False


def later(default: Any) -> Any:
    """Returns a field of options that came after points of its benchmark had been measured."""
    return dataclasses.field(default=default, metadata=LATER)


def gib_to_bytes(gib: float | None) -> int | None:
    """Returns a limit in bytes; None, which is no limit, stays."""
    return None if gib is None else int(gib * _GIB)


def delete(tree: Any) -> None:
    """Frees the arrays of a tree at once, wherever else it is referred to."""
    import jax

    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, jax.Array) and not leaf.is_deleted():
            leaf.delete()


def delete_if_scarce(tree: Any) -> None:
    """Frees the arrays of a tree before they are loaded, if a load would not fit beside them."""
    # Nothing is lost: what is loaded is compared with the digest of what was saved.
    from orbax_bench_core.state import load_fits, release_freed

    if not load_fits(tree):
        delete(tree)
        release_freed()


def await_all_hosts(name: str) -> None:
    """Returns once every process has called; at once in a single process."""
    import jax

    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices(name)
