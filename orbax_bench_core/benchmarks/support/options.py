"""What the options of several benchmarks have in common."""

from __future__ import annotations

import dataclasses
from typing import Any

from orbax_bench_core.authoring import BenchmarkOptions
from orbax_bench_core.measure import default_metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasuringOptions(BenchmarkOptions):
    """Options of a benchmark that can also trace allocations.

    Attributes:
        metric_tracemalloc_enabled: Also trace Python allocations, which slows the operation down.
    """

    metric_tracemalloc_enabled: bool | list[bool] = False

    @property
    def collectors(self) -> list[str]:
        """The collectors that measure each operation."""
        return default_metrics() + ["tracemalloc"] * bool(self.metric_tracemalloc_enabled)


def check_least(options: BenchmarkOptions, **fewest: int) -> None:
    """Refuses numbers that leave nothing to measure.

    Args:
        options: The options; a list among them is a sweep axis, whose points are checked instead.
        **fewest: The smallest number that each option takes, by name.

    Raises:
        ValueError: A number is smaller.
    """
    for name, least in fewest.items():
        value = getattr(options, name)
        if not isinstance(value, list) and not (isinstance(value, int) and value >= least):
            raise ValueError(f"{name} must be {least} or more, got {value!r}")


def delete(tree: Any) -> None:
    """Frees the arrays of a tree at once, wherever else it is referred to.

    Args:
        tree: Any pytree. The checkpoint data of a repeat is made again for the next one.
    """
    import jax

    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, jax.Array) and not leaf.is_deleted():
            leaf.delete()


def delete_if_scarce(tree: Any) -> None:
    """Frees the arrays of a tree if a second copy of them would not fit.

    Args:
        tree: Any pytree. Every process must call: all free theirs or none does, because making the
            checkpoint data again takes them all.
    """
    from orbax_bench_core.state import agreed_bytes, available_bytes, held_bytes

    if agreed_bytes(held_bytes(tree)) > agreed_bytes(available_bytes()):
        delete(tree)


def await_all_hosts(name: str) -> None:
    """Returns once every process has called; at once in a single process.

    Args:
        name: What is waited for; the same in every process.
    """
    import jax

    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices(name)
