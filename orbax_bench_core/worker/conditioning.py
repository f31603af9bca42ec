"""Conditions of a sweep point: the page cache before a load, and its measured residency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orbax_bench_core.config import Conditions
from orbax_bench_core.measure import RESIDENT_SHARE, Sample
from orbax_bench_core.worker import page_cache

if TYPE_CHECKING:
    from etils import epath


class PageCacheConditioner:
    """Sets the page cache before a load, and records what share of the checkpoint is resident."""

    def __init__(
        self,
        conditions: Conditions,
        observe: Callable[[Sequence[Sample]], None],
        await_all_hosts: Callable[[], None],
    ) -> None:
        """Controls the conditions of one repeat."""
        self._conditions = conditions
        self._observe = observe
        self._await_all_hosts = await_all_hosts
        self._loads: dict[str, int] = {}

    @property
    def durable(self) -> bool:
        """Whether a save is also to be timed until it is on stable storage."""
        return self._conditions.durable

    def make_durable(self, checkpoint: epath.Path) -> None:
        """Waits until a checkpoint is on stable storage; an object store's always is."""
        if _is_local(checkpoint):
            page_cache.make_durable(Path(checkpoint))

    def prepare_load(self, operation: str, checkpoint: epath.Path) -> None:
        """Drops or reads the checkpoint's pages, and records the share that is then resident.

        A remote checkpoint has no pages here: its loads are neither warm nor cold, and no share is
        recorded.
        """
        occurrence = self._loads[operation] = self._loads.get(operation, -1) + 1
        if not _is_local(checkpoint):
            return
        directory = Path(checkpoint)
        if self._conditions.cache == "cold":
            page_cache.drop(directory)
        else:
            page_cache.fill(directory)
        self._await_all_hosts()
        share = page_cache.resident_share(directory)
        if share is not None:
            metric = RESIDENT_SHARE
            self._observe([Sample(operation, occurrence, metric.name, share, metric.unit)])
        self._await_all_hosts()


def _is_local(path: epath.Path) -> bool:
    return "://" not in str(path)
