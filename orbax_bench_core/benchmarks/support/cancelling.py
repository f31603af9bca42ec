"""Options and operations of the benchmarks that cancel a save."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from orbax_bench_core.authoring import BenchmarkOptions, Sweepable
from orbax_bench_core.benchmarks.support.needs import require_one_process

if TYPE_CHECKING:
    from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class CancelOptions(BenchmarkOptions):
    """Options of a benchmark that cancels a save.

    Attributes:
        cancel_delay_secs: Seconds between the start of the save and its cancellation. A save that
            is over by then cannot be cancelled.
        perform_cancellation: Whether to cancel at all, in a single process; otherwise the save runs
            to its end.
    """

    cancel_delay_secs: Sweepable[float] = 2
    perform_cancellation: Sweepable[bool] = True

    def __post_init__(self) -> None:
        """Refuses to cancel before the save began."""
        delay = self.cancel_delay_secs
        if isinstance(delay, int | float) and delay < 0:
            raise ValueError(f"cancel_delay_secs must be 0 or more, got {delay}")


def require_cancellable(options: CancelOptions, benchmark: str) -> None:
    """Checks that a save can be cancelled here.

    Orbax cancels on each host by itself: hosts at different points of a save then delete what
    others write, or wait for each other for minutes.
    """
    if options.perform_cancellation:
        require_one_process(f"{benchmark} with perform_cancellation: true")


def measure_cancel(
    metrics: Metrics,
    options: CancelOptions,
    *,
    in_progress: Callable[[], bool],
    cancel: Callable[[], object],
) -> None:
    """Waits, cancels, and measures `cancel`; `cancel_too_late` if nothing is left to cancel."""
    time.sleep(options.cancel_delay_secs)
    with metrics.measure("cancel" if in_progress() else "cancel_too_late"):
        cancel()


def note_outcome(metrics: Metrics, *, committed: bool) -> None:
    """Notes in the record whether the checkpoint is there in spite of the cancellation."""
    said = "the save was faster" if committed else "the save was cancelled, and left no checkpoint"
    metrics.notes["cancel"] = [said]
