"""Progress of a run: a bar on a terminal, one line per repeat everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from orbax_bench_core.cli.pace import CLOCK, Clock, Names, Pace, print_line
from orbax_bench_core.document import seconds
from orbax_bench_core.execute import Event, Progress, Retry, Watcher
from orbax_bench_core.records import Repeat

_MARKS: Final = {"passed": "[green]✓[/]", "failed": "[red]✗[/]", "skipped": "[yellow]–[/]"}
_BAR: Final = 20
_STEADY: Final = 10
"""Repeats of whose times the mean is steady."""
_WORTH_SAYING_S: Final = 60.0
_PARTS: Final = ("_blocking", "_background")
"""Ends of operations that are parts of another one, which a terminal leaves out."""


class ProgressReport(Watcher):
    """Progress view of the repeats of a run.

    On a terminal there is a bar with the count and the time left first, and lines are cut to its
    width. A log has whole lines, each with the time of day and the time left.
    """

    def __init__(
        self,
        console: Console,
        *,
        total: int,
        verbose: bool,
        names: Sequence[str] = (),
        clock: Clock = CLOCK,
    ) -> None:
        """Shows progress on `console`, out of `total` repeats of the whole run.

        Args:
            console: Where to show it.
            total: Repeats of the whole run.
            verbose: Whether what begins and what was done before has a line, too.
            names: Names of the points.
            clock: What tells the time.
        """
        self._verbose = verbose
        self._console = console
        self._total = total
        self._names = Names(names)
        self._clock = clock
        self._round = max(1, len(names))
        # Whole rounds, for points differ; a few of a single point, for its repeats do.
        self._pace = Pace(self._round * math.ceil(_STEADY / self._round), clock)
        self._points = len(names)
        self._begun: set[str] = set()
        self._measured = 0
        self._ended = 0
        self._bar = Bar(
            TextColumn("{task.fields[count]}", markup=False),
            BarColumn(_BAR),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=total, count=self._count())

    @property
    def ended(self) -> int:
        """Number of repeats that have a record by now."""
        return self._ended

    def __enter__(self) -> Self:
        self._bar.start()
        self._pace.begins()
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
            self._print(retried(event))

    def _show(self, progress: Progress) -> None:
        name = progress.point.name
        if progress.repeat is None:
            what = "warm-up" if progress.index is None else f"repeat {progress.index}"
            room = self._console.width - len(self._count()) - _BAR - len(what) - 4
            shown = f"{self._names.fitting(name, room)} {what}"
            self._bar.update(self._task, description=shown, count=self._count())
            if self._verbose:
                self._print(Text(f"... {name} {what}"))
            return
        self._ended += 1
        if not progress.reused:
            self._pace.step(first=name not in self._begun)
            self._begun.add(name)
            self._measured += 1
        self._bar.update(self._task, completed=self._ended, count=self._count())
        if self._verbose or not progress.reused:
            self._print(self._line(progress, progress.repeat))
        if self._measured == self._round and not progress.reused:
            self._say_length()

    def _line(self, progress: Progress, repeat: Repeat) -> Text:
        """Returns how a repeat ended, for a terminal without what has no room in one line."""
        mark = Text.from_markup(_MARKS[repeat.status])
        name, which = progress.point.name, f"repeat {progress.index}"
        if self._console.is_terminal and repeat.error is None:
            count = f"{self._ended:>{len(str(self._total))}}/{self._total}"
            found = repeat.labelled_seconds()
            times = _times({one: value for one, value in found.items() if _is_whole(one, found)})
            room = self._console.width - len(count) - len(which) - len(times) - 6
            return Text.assemble(
                f"{count} ", mark, f" {self._names.fitting(name, room)} {which}: {times}"
            )
        said = _outcome(repeat)
        return Text.assemble(f"{self._count()} ", mark, f" {name} {which}: {said}")

    def _count(self) -> str:
        """Returns how far the run is, and the time that is left."""
        count = f"{self._ended:>{len(str(self._total))}}/{self._total}"
        left = self._pace.left(*self._steps())
        return f"{count}, {left}" if left else count

    def _steps(self) -> tuple[int, int]:
        """Returns how many repeats are left, and how many of them are the first of their point."""
        steps = self._total - self._ended
        return steps, min(steps, max(0, self._points - len(self._begun)))

    def _say_length(self) -> None:
        """Says after the first round how long the others will take; that of one point says it."""
        steps = self._steps()
        long = (self._pace.seconds(*steps) or 0.0) >= _WORTH_SAYING_S
        if long and self._round > 1 and not self._console.is_terminal:
            self._print(Text(f"the first round is done; {self._pace.left(*steps)}"))

    def _print(self, line: Text) -> None:
        print_line(self._console, self._clock, line)


def retried(retry: Retry) -> Text:
    """Returns the line that tells of a try that has failed and is made again."""
    arm = "" if retry.arm is None else f" {retry.arm}, block {retry.block}"
    where = f"{retry.point.name}{arm} repeat {retry.index}"
    return Text.assemble(("↻", "yellow"), f" {where} is tried again: {retry.reason}")


def _is_whole(operation: str, found: dict[str, float]) -> bool:
    """Returns whether an operation is not a part of another one that was measured."""
    return not any(
        operation.endswith(part) and operation.removesuffix(part) in found for part in _PARTS
    )


def _times(found: dict[str, float]) -> str:
    return ", ".join(f"{operation} {seconds(value)}" for operation, value in found.items())


def _outcome(repeat: Repeat) -> str:
    if repeat.error is not None:
        return f"{repeat.status}: {repeat.error.said}"
    return _times(repeat.labelled_seconds())
