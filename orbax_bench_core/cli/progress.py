"""Progress of a measurement: a live line on a terminal, a line at most every 30 s in a log."""

import statistics
from collections.abc import Mapping
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column
from rich.text import Text

from orbax_bench_core.execute import Event, Progress, Retry, Watcher
from orbax_bench_core.pages import seconds, wait
from orbax_bench_core.records import Repeat

_MARKS: Final = {"passed": ("✓", "green"), "failed": ("✗", "red"), "skipped": ("–", "yellow")}
_WINDOW_S: Final = 3600.0
"""Seconds by whose pace the time left is told."""
_QUIET_S: Final = 30.0
"""Seconds after which a log that nothing was printed to says how far it is."""
_BAR: Final = 12
"""Columns of the bar: 80 have room for the time left and for what is known."""


class ProgressView(Watcher):
    """View of a measurement: how far it is, the time left, what is known so far, what runs now.

    On a terminal these are one live line; a log gets them as a line once nothing was printed for
    30 s. Only failures, retries and what a view prints itself are lines of their own. Lines in a
    log begin with the time of day. The pace is that of what is measured now: the first step, which
    also starts a worker and compiles, and what was measured before do not count.
    """

    def __init__(self, console: Console, *, total: int, verbose: bool) -> None:
        """Shows progress out of `total` steps; with `verbose` also what begins and was before."""
        self._console = console
        self._verbose = verbose
        self._bar = Bar(
            TextColumn("{task.fields[count]}", markup=False),
            BarColumn(_BAR),
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis"),
            ),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            refresh_per_second=1,  # drawing takes processor time from what is measured here
            speed_estimate_period=_WINDOW_S,
        )
        self._task = self._bar.add_task("starting", total=total, count="")
        self._printed = console.get_time()
        self._point = self._now = ""  # id of the point that is measured, and what it does

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Shows one thing that happened."""
        if isinstance(event, Progress) and event.repeat is None:
            what = self._what(event)
            self._point, self._now = event.point.id, f"{what} {event.point.name}"
            self._shows()
            if self._verbose:
                self._begins(f"{event.point.name} {what}")
        elif isinstance(event, Progress) and event.repeat is not None:
            self._point = event.point.id
            self._ended(event, event.repeat)
            self._shows()
        elif isinstance(event, Retry):
            arm = "" if event.arm is None else f" {event.arm}, block {event.block}"
            where = f" {event.point.name}{arm} repeat {event.index}"
            self._print(Text.assemble(("↻", "yellow"), f"{where} is tried again: {event.reason}"))

    def _what(self, event: Progress) -> str:
        return "warm-up" if event.index is None else f"repeat {event.index}"

    def _ended(self, event: Progress, repeat: Repeat) -> None:
        raise NotImplementedError

    def _count(self) -> str:
        raise NotImplementedError

    def _known(self) -> str:
        """Returns the result so far; empty if there is none yet."""
        raise NotImplementedError

    def _begins(self, what: str) -> None:
        """Shows in a line what begins, where everything is to be shown."""

    def _advance(self, completed: int, total: int) -> None:
        """Counts the steps that were measured now, of all that may be."""
        self._bar.tasks[0].total = max(1, total)  # by `update` it would forget the pace
        self._bar.update(self._task, completed=completed)
        self._bar.update(self._task, count=self._count())

    def _left(self) -> str:
        """Returns the time that is left, such as `4 min left`; empty if nothing is known."""
        left = self._bar.tasks[0].time_remaining
        return f"{wait(left / 60)} left" if left else ""

    def _shows(self) -> None:
        """Shows how far it is: on a terminal at once, in a log that was quiet for long."""
        said = "; ".join(filter(None, (self._known(), self._now)))
        self._bar.update(self._task, description=said, count=self._count())
        quiet = self._console.get_time() - self._printed
        if not self._console.is_terminal and quiet >= _QUIET_S:
            self._print(Text(f"{self._count()}: {said}"))

    def _print(self, line: Text) -> None:
        """Prints a line of any length; where nobody watches a terminal, with the time of day."""
        self._printed = self._console.get_time()
        console = self._console
        stamp = "" if console.is_terminal else f"{console.get_datetime():%H:%M:%S} "
        console.print(Text.assemble(stamp, line), highlight=False, soft_wrap=True)


class ProgressReport(ProgressView):
    """Progress of the repeats of a run: the median of each operation of the point that is measured.

    Each repeat that failed or was skipped is a line; with `verbose` each of them is.
    """

    def __init__(self, console: Console, *, total: int, verbose: bool) -> None:
        """Shows progress on `console`, out of `total` repeats of the whole run."""
        super().__init__(console, total=total, verbose=verbose)
        self._total = self._wanted = total
        self._done = self._measured = 0
        self._times: dict[str, dict[str, list[float]]] = {}  # of each operation, by the point's id

    def _begins(self, what: str) -> None:
        self._print(Text(f"... {what}"))

    def _ended(self, event: Progress, repeat: Repeat) -> None:
        self._done += 1
        self._measured += not event.reused
        self._wanted -= event.reused
        self._advance(self._measured, self._wanted)
        taken = self._times.setdefault(event.point.id, {})
        for operation, value in repeat.labelled_seconds().items():
            taken.setdefault(operation, []).append(value)
        failed = repeat.status != "passed" and not event.reused
        if self._verbose or failed:
            where = f" {event.point.name} repeat {event.index}: "
            error = repeat.error
            said = times(repeat) if error is None else f"{repeat.status}: {error.said}"
            self._print(Text.assemble(f"{self._count()} ", _MARKS[repeat.status], where, said))

    def _count(self) -> str:
        count, left = f"{self._done:>{len(str(self._total))}}/{self._total}", self._left()
        return f"{count}, {left}" if left else count

    def _known(self) -> str:
        found = self._times.get(self._point, {}).items()
        medians = {name: statistics.median(values) for name, values in found}
        return _listed(medians)


def times(repeat: Repeat) -> str:
    """Returns how long each operation of a repeat took."""
    return _listed(repeat.labelled_seconds())


def _listed(taken: Mapping[str, float]) -> str:
    from orbax_bench_core.analysis.names import spoken  # once workers have started

    return ", ".join(f"{spoken(operation)} {seconds(value)}" for operation, value in taken.items())
