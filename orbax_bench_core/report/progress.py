"""A run while it goes on: a bar on a terminal, one line per repeat everywhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from orbax_bench_core.execute.orchestrator import Progress
from orbax_bench_core.report.text import seconds
from orbax_bench_core.results.record import Record
from orbax_bench_core.results.summary import TIME

_MARKS = {"passed": "[green]✓[/]", "failed": "[red]✗[/]", "skipped": "[yellow]–[/]"}


class ProgressReport:
    """Shows progress; a context manager, to be passed as the watcher of a run."""

    def __init__(self, console: Console, *, total: int) -> None:
        """Shows progress on `console`.

        Args:
            console: Where to.
            total: Number of repeats of the whole run.
        """
        self._console = console
        self._total = total
        self._ended = 0
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=total)

    @property
    def ended(self) -> int:
        """How many repeats have a record by now."""
        return self._ended

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Shows one thing that happened."""
        name = escape(progress.point.name)
        if progress.record is None:
            what = "warm-up" if progress.repeat is None else f"repeat {progress.repeat}"
            self._bar.update(self._task, description=f"{name} {what}")
            return
        self._ended += 1
        self._bar.advance(self._task)
        if not progress.reused:
            count = f"{self._ended:>{len(str(self._total))}}/{self._total}"
            self._console.print(
                f"{count} {_MARKS[progress.record.status]} {name} "
                f"repeat {progress.repeat}: {escape(_outcome(progress.record))}",
                highlight=False,
                soft_wrap=True,
            )


def _outcome(record: Record) -> str:
    if record.error is not None:
        return f"{record.status}: {record.error.type}: {record.error.message}"
    return ", ".join(
        f"{sample.operation} {seconds(sample.value)}"
        for sample in record.samples
        if sample.metric == TIME
    )
