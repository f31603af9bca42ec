"""What a job has spent on checkpoints so far, as a line and as metrics for a node exporter."""

import collections
import dataclasses
import os
import statistics
from typing import Final

from orbax_bench_core.recorder.operations import Operation

_KEPT: Final = 1000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Figures of one process since its recording began; times in seconds."""

    seconds: float  # since the recording began
    saves: int  # saves that have ended
    failed: int  # of them without a checkpoint
    blocked_s: float  # training waited for saves, in all
    waited_s: float  # of that for the save before
    background_s: float  # saves went on in the background, in all
    blocked_median_s: float | None  # of the last thousand saves; None without any
    loads: int
    load_s: float
    steps: int
    step_s: float | None  # median of the last thousand steps; None if no step is known
    last_commit: float | None  # seconds since the epoch
    errors: int  # of the recorder itself

    def __str__(self) -> str:
        """Returns a line for people."""
        share = self.blocked_s / self.seconds if self.seconds else 0.0
        median = (
            "" if self.blocked_median_s is None else f", half within {self.blocked_median_s:.3g} s"
        )
        steps = "" if self.step_s is None else f"; {self.steps} steps of {self.step_s:.3g} s"
        return (
            f"{self.saves} saves ({self.failed} failed) blocked {self.blocked_s:.3g} s, "
            f"{share:.1%} of the time{median}, {self.waited_s:.3g} s of it for the save before; "
            f"{self.loads} loads took {self.load_s:.3g} s{steps}"
        )

    def openmetrics(self) -> str:
        """Returns the figures in the format of OpenMetrics, which node exporters read."""
        done = self.saves - self.failed
        committed, failed = '_total{state="committed"}', '_total{state="failed"}'
        rows: list[tuple[str, str, list[tuple[str, float]]]] = [
            ("saves", "counter", [(committed, done), (failed, self.failed)]),
            ("save_blocked_seconds", "counter", [("_total", self.blocked_s)]),
            ("save_waited_seconds", "counter", [("_total", self.waited_s)]),
            ("save_background_seconds", "counter", [("_total", self.background_s)]),
            ("loads", "counter", [("_total", self.loads)]),
            ("load_seconds", "counter", [("_total", self.load_s)]),
            ("steps", "counter", [("_total", self.steps)]),
        ]
        if self.last_commit is not None:
            rows.append(("last_commit_timestamp_seconds", "gauge", [("", self.last_commit)]))
        text = ""
        for name, kind, samples in rows:
            text += f"# TYPE orbax_{name} {kind}\n"
            text += "".join(f"orbax_{name}{end} {value}\n" for end, value in samples)
        return f"{text}# EOF\n"

    def write(self, file: str) -> None:
        """Replaces a file of metrics, so that no reader sees a half of one."""
        new = f"{file}.{os.getpid()}"
        with open(new, "w", encoding="utf-8") as opened:
            opened.write(self.openmetrics())
        os.replace(new, file)


class Totals:
    """Sums over the operations and steps of a process."""

    def __init__(self) -> None:
        """Has seen nothing."""
        self.saves = self.failed = self.loads = self.steps = 0
        self.blocked_s = self.waited_s = self.background_s = self.load_s = 0.0
        self.last_commit: float | None = None
        self._blocked: collections.deque[float] = collections.deque(maxlen=_KEPT)
        self._steps: collections.deque[float] = collections.deque(maxlen=_KEPT)

    def add(self, operation: Operation) -> None:
        """Adds an operation that has ended."""
        took = operation.call_s or 0.0
        if operation.what == "load":
            self.loads += 1
            self.load_s += took
            return
        self.saves += 1
        self.blocked_s += took
        self.waited_s += operation.waited_s
        self._blocked.append(took)
        if operation.ended is not None:
            total = operation.ended - operation.begun
            self.background_s += max(0.0, total - took)
            if operation.state == "committed":
                self.last_commit = operation.epoch + total
        self.failed += operation.state != "committed"

    def add_step(self, seconds: float) -> None:
        """Adds a step."""
        self.steps += 1
        self._steps.append(seconds)

    def summary(self, seconds: float, errors: int) -> Summary:
        """Returns the figures."""
        return Summary(
            seconds=seconds,
            saves=self.saves,
            failed=self.failed,
            blocked_s=self.blocked_s,
            waited_s=self.waited_s,
            background_s=self.background_s,
            blocked_median_s=statistics.median(self._blocked) if self._blocked else None,
            loads=self.loads,
            load_s=self.load_s,
            steps=self.steps,
            step_s=statistics.median(self._steps) if self._steps else None,
            last_commit=self.last_commit,
            errors=errors,
        )
