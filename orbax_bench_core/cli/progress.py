"""Progress of a run: a bar on a terminal, one line per repeat everywhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from orbax_bench_core.document import seconds
from orbax_bench_core.execute import Event, Progress, Retry, Watcher
from orbax_bench_core.records import Repeat

_MARKS = {"passed": "[green]✓[/]", "failed": "[red]✗[/]", "skipped": "[yellow]–[/]"}


class ProgressReport(Watcher):
    """Progress view of the repeats of a run."""

    def __init__(self, console: Console, *, total: int, verbose: bool) -> None:
        """Shows progress on `console`, out of `total` repeats of the whole run.

        With `verbose`, a line is printed for what begins and for what was done before, too.
        """
        self._verbose = verbose
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
        """Number of repeats that have a record by now."""
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

    def __call__(self, event: Event) -> None:
        """Shows one thing that happened."""
        if isinstance(event, Progress):
            self._show(event)
        elif isinstance(event, Retry):
            self._console.print(retried(event), highlight=False, soft_wrap=True)

    def _show(self, progress: Progress) -> None:
        name = escape(progress.point.name)
        if progress.repeat is None:
            what = "warm-up" if progress.index is None else f"repeat {progress.index}"
            self._bar.update(self._task, description=f"{name} {what}")
            if self._verbose:
                self._console.print(f"... {name} {what}", highlight=False, soft_wrap=True)
            return
        self._ended += 1
        self._bar.advance(self._task)
        if self._verbose or not progress.reused:
            count = f"{self._ended:>{len(str(self._total))}}/{self._total}"
            self._console.print(
                f"{count} {_MARKS[progress.repeat.status]} {name} "
                f"repeat {progress.index}: {escape(_outcome(progress.repeat))}",
                highlight=False,
                soft_wrap=True,
            )


def retried(retry: Retry) -> Text:
    """Returns the line that tells of a try that has failed and is made again."""
    arm = "" if retry.arm is None else f" {retry.arm}, block {retry.block}"
    where = f"{retry.point.name}{arm} repeat {retry.index}"
    return Text.assemble(("↻", "yellow"), f" {where} is tried again: {retry.reason}")


def _outcome(repeat: Repeat) -> str:
    if repeat.error is not None:
        return f"{repeat.status}: {repeat.error.said}"
    found = repeat.labelled_seconds()
    return ", ".join(f"{operation} {seconds(value)}" for operation, value in found.items())
