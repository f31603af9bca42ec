"""Live view of a comparison: one line per point, and the operation under way."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from orbax_bench_core.analysis.verdicts import PointVerdict, nearest_to_trouble, needs_more, words
from orbax_bench_core.cli.pace import CLOCK, Clock, Names, Pace, print_line
from orbax_bench_core.cli.progress import retried
from orbax_bench_core.config import ARMS, Arm, GateConfig
from orbax_bench_core.document import seconds, wait
from orbax_bench_core.execute import Event, Progress, Retry, Watcher
from orbax_bench_core.steps import Judged
from orbax_bench_core.sweep import BLOCK_SIZE, Pair, PairDesign

_LINES_BELOW: Final = 4
_FEWEST_LINES: Final = 3
_OF_STALLS: Final = 2
"""Place from the end of the last look at times; the last of all is at stalls."""
_WORTH_SAYING_S: Final = 60.0
_LATEST: Final = 40
"""Operations by whose pace the time left is told."""


@dataclasses.dataclass(slots=True)
class _Line:
    """State of one point: its name, design and looks, operations of each arm, last verdict.

    `failed` has the first attempts of each arm that failed or hung, so far.
    """

    name: str
    design: PairDesign
    looks: tuple[int, ...]
    used: int = 0
    failed: dict[Arm, set[int]] = dataclasses.field(default_factory=dict)
    verdict: PointVerdict | None = None
    ended: bool = False

    @property
    def most(self) -> int:
        """Operations per arm at the last look; that at stalls is made only where it is needed."""
        return next((look for look in self.looks[-2:] if look >= self.used), self.looks[-1])


class LiveVerdicts(Watcher):
    """Live view of the pairs of a comparison.

    On a terminal every unfinished point has a line that follows it, and a finished one leaves its
    line above. Elsewhere each look at a point prints a line. Without a `Progress` event to pass,
    `operation` and `judged` can be called instead.
    """

    def __init__(
        self,
        console: Console,
        points: Sequence[Pair],
        gate: GateConfig,
        designs: Mapping[str, PairDesign] | None = None,
        *,
        verbose: bool = False,
        clock: Clock = CLOCK,
    ) -> None:
        """Prepares the view.

        Args:
            console: Where it is shown.
            points: The pairs.
            gate: Has the looks.
            designs: Which workers each pair has, by its id; those that share one are left out.
            verbose: Whether every operation that ends has a line.
            clock: What tells the time.
        """
        self._console = console
        self._clock = clock
        self._pace = Pace(_LATEST, clock)
        self._told = False
        self._verbose = verbose
        shared = PairDesign()
        found = {point.id: (designs or {}).get(point.id, shared) for point in points}
        self._lines = {
            point.id: _Line(
                point.name,
                found[point.id],
                (*found[point.id].looks(gate), found[point.id].last_look(gate)),
            )
            for point in points
        }
        self._names = Names([point.name for point in points])
        self._now = "starting"
        self._current = ""
        self._bar = Bar(
            TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn(), console=console
        )
        self._task = self._bar.add_task("", total=max(1, self._total()))
        # Rendering takes processor time from what is measured here.
        self._live = Live(console=console, transient=True, refresh_per_second=1)

    def __enter__(self) -> Self:
        self._pace.begins()
        if self._console.is_terminal:
            self._show()
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()
            for line in self._lines.values():
                if line.verdict is not None and not line.ended:
                    self._print(self._whole(line))

    def __call__(self, event: Event) -> None:
        """Shows one thing that happened."""
        if isinstance(event, Progress):
            self._progress(event)
        elif isinstance(event, Retry):
            self._print(retried(event))
        elif isinstance(event, Judged):
            self.judged(event.verdict)

    def _progress(self, progress: Progress) -> None:
        if progress.repeat is None:
            if progress.index is None:
                self._begins(progress.point.id, "warm-up", progress.arm)
            else:
                self.operation(progress.point.id, progress.arm, progress.index)
            return
        line = self._lines[progress.point.id]
        assert progress.index is not None
        line.used = max(line.used, _used(line.design, progress.index, ended=True))
        if progress.arm is not None and progress.repeat.first_failed:
            line.failed.setdefault(progress.arm, set()).add(progress.index)
        if not progress.reused:
            self._pace.step()
        failed = progress.repeat.status != "passed" or progress.repeat.first_failed
        if failed or (self._verbose and not progress.reused):
            self._print(_outcome(progress))
        self._tell_length(line)
        self._show()

    def _tell_length(self, line: _Line) -> None:
        """Says once, after a block, how long a verdict may take at this pace."""
        if self._told or line.used < line.design.operations(line.design.block_size):
            return
        lines = [one for one in self._lines.values() if not one.ended]
        first, last = (
            self._pace.seconds(len(ARMS) * sum(max(0, one.looks[look] - one.used) for one in lines))
            for look in (0, -_OF_STALLS)
        )
        if first is not None and last is not None:
            self._told = True
        if first is not None and last is not None and last >= _WORTH_SAYING_S:
            self._print(
                Text(
                    f"about {wait(first / 60)} to the first look at every point, {wait(last / 60)} "
                    "at most where times decide"
                )
            )

    def _left(self) -> str:
        """Returns the time to the last look of all points, such as `at most 4 min left`."""
        missing = sum(line.most - line.used for line in self._lines.values() if not line.ended)
        left = self._pace.left(len(ARMS) * missing)
        return f"at most {left}" if left else ""

    def operation(self, point_id: str, arm: Arm | None, repeat: int) -> None:
        """Shows that a repeat begins; all blocks before its own have ended."""
        line = self._lines[point_id]
        line.used = max(line.used, _used(line.design, repeat))
        block, slot, operation = line.design.place(repeat)
        what = f"operation {slot + 1} of {BLOCK_SIZE}"
        if line.design.lives:
            of = line.design.operations_per_life
            what = f"life {slot + 1} of {BLOCK_SIZE}, operation {operation + 1} of {of}"
        self._begins(point_id, f"block {block}, {what}", arm)

    def judged(self, verdict: PointVerdict) -> None:
        """Shows what a point says after a look."""
        line = self._lines[verdict.point_id]
        line.verdict = verdict
        line.ended = verdict.failed or not needs_more(verdict)
        if line.ended or not self._console.is_terminal:
            self._print(self._whole(line))
        self._show()

    def _begins(self, point_id: str, what: str, arm: Arm | None) -> None:
        self._current = point_id
        self._now = f"{arm or 'both arms'}, {what}"
        self._show()

    def _print(self, line: Text) -> None:
        print_line(self._console, self._clock, line)

    def _whole(self, line: _Line) -> Text:
        """Returns a point as one line of any length, to be kept."""
        word, used, numbers = self._cells(line)
        why = ""
        if line.verdict is not None and line.verdict.reason:
            why = f": {line.verdict.reason}"
        elif line.verdict is not None and (decided := words.decided(line.verdict)):
            why = f": {decided}" if line.verdict.endpoint != "time" else ""
        parts = [part for part in (used, numbers, line.name) if part]
        return Text.assemble(word, " ", " ".join(parts), why)

    def _cells(self, line: _Line) -> tuple[Text, str, str]:
        """Returns the word of a point so far, its operations, and the worst of its ratios."""
        verdict = line.verdict
        if verdict is None:
            word = Text("… no look yet", style="dim")
            return word, _attempts(line, line.used), ""
        # Times may be settled at a look before the last: what was measured is told by the blocks.
        judged = line.design.operations(verdict.blocks * line.design.block_size)
        word = Text(f"{words.MARKS[verdict.word]} {verdict.word}", style=words.STYLES[verdict.word])
        if verdict.is_study:
            word = Text(words.STUDY)
        worst = nearest_to_trouble(verdict)
        numbers = ""
        if worst is not None and worst.verdict.ratio is not None:
            found = worst.verdict
            numbers = f"{worst.operation} {words.interval(found)} {words.ratio(found.ratio)}"
        return word, _attempts(line, max(line.used, judged)), numbers

    def _show(self) -> None:
        """Brings what the terminal shows up to date."""
        if not self._console.is_terminal:
            return
        ended = sum(line.ended for line in self._lines.values())
        done = sum(line.most if line.ended else line.used for line in self._lines.values())
        self._bar.update(
            self._task,
            completed=done,
            total=max(1, self._total()),
            description=", ".join(
                filter(None, [f"{ended} of {len(self._lines)} points are done", self._left()])
            ),
        )
        self._live.update(Group(*self._following(), self._bar))

    def _total(self) -> int:
        return sum(line.most for line in self._lines.values())

    def _following(self) -> list[Table | Text]:
        """Returns the unfinished points, as many as there is room for, and what runs now."""
        open_ = [line for line in self._lines.values() if not line.ended]
        room = max(_FEWEST_LINES, self._console.height - _LINES_BELOW)
        shown = open_ if len(open_) <= room else self._chosen(open_, room)
        cells = [self._cells(line) for line in shown]
        taken = sum(max((len(row[column]) for row in cells), default=0) + 2 for column in range(3))
        table = Table.grid(padding=(0, 2, 0, 0))
        for (word, used, numbers), line in zip(cells, shown, strict=True):
            name = self._names.fitting(line.name, self._console.width - taken)
            table.add_row(word, used, escape(numbers), escape(name))
        hidden = len(open_) - len(shown)
        more = [Text(f"… and {hidden} more points", style="dim")] if hidden else []
        now = f"now: {self._now}"
        if self._current:
            name = self._lines[self._current].name
            now = f"{now}: {self._names.fitting(name, self._console.width - len(now) - 2)}"
        return [table, *more, Text(now, style="dim")]

    def _chosen(self, open_: Sequence[_Line], room: int) -> list[_Line]:
        """Returns the point that runs, then those that have been looked at, then others."""
        current = self._lines.get(self._current)
        ranked = sorted(open_, key=lambda line: (line is not current, line.verdict is None))
        kept = {id(line) for line in ranked[:room]}
        return [line for line in open_ if id(line) in kept]


def _used(design: PairDesign, repeat: int, *, ended: bool = False) -> int:
    """Returns the operations per arm that have ended when a repeat begins or has ended.

    The repeats of a block of lives do not end in the order of their numbers, so that only its
    blocks are counted.
    """
    if design.lives:
        return design.operations(repeat // design.block_size * design.block_size)
    return design.operations(repeat + ended)


def _attempts(line: _Line, used: int) -> str:
    """Returns how many operations per arm were made, and how many first attempts failed."""
    failed = {arm: len(found) for arm, found in line.failed.items()}
    if line.verdict is not None:
        failed |= {arm: found.failed for arm, found in line.verdict.attempts.items()}
    said = ", ".join(f"{arm} {failed[arm]}" for arm in ARMS if failed.get(arm))
    return f"{used}/{line.most}{f' (failed: {said})' if said else ''}"


def _outcome(progress: Progress) -> Text:
    """Returns how a repeat ended."""
    repeat = progress.repeat
    assert repeat is not None
    where = f" {progress.point.name} {progress.arm}, block {progress.block}: "
    if repeat.error is not None:
        said = repeat.error.said
        return Text.assemble((repeat.status, "red"), where, said)
    if repeat.first_failed:
        said = f"{repeat.first_reason}; a retry passed, which counts nowhere"
        return Text.assemble(("failed", "red"), where, said)
    found = repeat.labelled_seconds()
    times = ", ".join(f"{operation} {seconds(value)}" for operation, value in found.items())
    return Text.assemble((repeat.status, "dim"), where, times)
