"""What a job has spent on checkpoints so far, as a line and as metrics for a node exporter."""

import collections
import dataclasses
import os
import statistics
from typing import Final

from orbax_bench_core.recorder.operations import Operation

_KEPT: Final = 1000
_COUNTERS: Final = {
    'saves_total{state="committed"}': "committed",
    'saves_total{state="failed"}': "failed",
    "save_blocked_seconds_total": "blocked_s",
    "save_waited_seconds_total": "waited_s",
    "save_background_seconds_total": "background_s",
    "loads_total": "loads",
    "load_seconds_total": "load_s",
    "steps_total": "steps",
}
"""Fields of a summary by the samples of a file of metrics."""


def _last() -> collections.deque[float]:
    return collections.deque(maxlen=_KEPT)


@dataclasses.dataclass(slots=True)
class Summary:
    """Figures of one process since its recording began; times in seconds."""

    seconds: float = 0.0  # since the recording began
    committed: int = 0  # saves that ended in a checkpoint
    failed: int = 0  # saves that ended without one
    blocked_s: float = 0.0  # training waited for saves, in all
    waited_s: float = 0.0  # of that for the save before
    background_s: float = 0.0  # saves went on in the background, in all
    loads: int = 0
    load_s: float = 0.0
    steps: int = 0
    last_commit: float | None = None  # seconds since the epoch
    errors: int = 0  # of the recorder itself
    blocked: collections.deque[float] = dataclasses.field(default_factory=_last, repr=False)
    step_s: collections.deque[float] = dataclasses.field(default_factory=_last, repr=False)

    def add(self, operation: Operation) -> None:
        """Adds an operation that has ended."""
        took, total = operation.call_s or 0.0, operation.total_s or 0.0
        if operation.what == "load":
            self.loads += 1
            self.load_s += took
            return
        self.blocked_s += took
        self.blocked.append(took)
        self.waited_s += operation.waited_s
        self.background_s += max(0.0, total - took)
        if operation.state == "committed":
            self.committed += 1
            self.last_commit = operation.t + total
        else:
            self.failed += 1

    def __str__(self) -> str:
        """Returns a line for people."""
        share = self.blocked_s / self.seconds if self.seconds else 0.0
        half = f", half within {_seconds(statistics.median(self.blocked))}" if self.blocked else ""
        each = f" of {_seconds(statistics.median(self.step_s))}" if self.step_s else ""
        return (
            f"{self.committed + self.failed} saves ({self.failed} failed) blocked "
            f"{_seconds(self.blocked_s)}, {100 * share:.1f} % of the time{half}, "
            f"{_seconds(self.waited_s)} of it for the save before; {self.loads} loads took "
            f"{_seconds(self.load_s)}; "
            f"{self.steps} steps{each}"
        )

    def write(self, file: str) -> None:
        """Writes the figures in the format of OpenMetrics, and replaces the file by them.

        A node exporter reads it too, and takes the counters for untyped: its own format would have
        `_total` in their TYPE lines, which OpenMetrics forbids.

        Makes its folder where that is missing.

        Raises:
            OSError: It cannot be written.
        """
        text, before = "", ""
        for sample, field in _COUNTERS.items():
            name = sample.partition("_total")[0]
            text += "" if name == before else f"# TYPE orbax_{name} counter\n"
            text += f"orbax_{sample} {getattr(self, field)}\n"
            before = name
        if self.last_commit is not None:
            name = "orbax_last_commit_timestamp_seconds"
            text += f"# TYPE {name} gauge\n{name} {self.last_commit}\n"
        os.makedirs(os.path.dirname(file), exist_ok=True)
        new = f"{file}.{os.getpid()}"
        with open(new, "w", encoding="utf-8") as opened:
            opened.write(f"{text}# EOF\n")
        os.replace(new, file)


def _seconds(value: float) -> str:
    """Returns seconds to three digits, without an exponent: a long job blocks for thousands."""
    return f"{value:.3g} s" if value < 999.5 else f"{value:.0f} s"
