"""Progress of a comparison: what the last look at a point found, and a line when it is done."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from orbax_bench_core.analysis.names import spoken
from orbax_bench_core.analysis.verdicts import (
    PointVerdict,
    nearest_to_trouble,
    needs_more,
    told,
)
from orbax_bench_core.cli.progress import ProgressView, times
from orbax_bench_core.config import ARMS, BLOCK_SIZE, Arm, GateConfig
from orbax_bench_core.execute import Event, Progress
from orbax_bench_core.experiments import PairJudged
from orbax_bench_core.pages import change, count
from orbax_bench_core.records import Repeat
from orbax_bench_core.sweep import Pair, PairDesign

_FEW: Final = 5
"""Points that the answer has in one screen, so that a terminal needs no line of each before."""


@dataclasses.dataclass(slots=True)
class _Line:
    """State of one point: its name, design and looks, operations of each arm, last verdict."""

    name: str
    design: PairDesign = dataclasses.field(init=False)
    looks: tuple[int, ...] = dataclasses.field(init=False)
    until: int = 0  # operations per arm to which `--more` lets it go on; 0 without
    used: int = 0
    before: int = 0  # operations of an earlier run
    # first attempts of each arm that failed or hung, so far
    failed: dict[Arm, set[int]] = dataclasses.field(default_factory=dict)
    verdict: PointVerdict | None = None
    ended: bool = False

    def follow(self, design: PairDesign, gate: GateConfig) -> None:
        """Goes on with another design, whose operations are counted from 0."""
        self.design, self.used, self.before = design, 0, 0
        self.looks = (*design.looks(gate), design.last_look(gate))

    @property
    def most(self) -> int:
        """Operations per arm at the last look; that at stalls is made only where it is needed."""
        most = next((look for look in self.looks[-2:] if look >= self.used), self.looks[-1])
        return max(most, self.until)

    @property
    def wanted(self) -> int:
        """Operations per arm that are measured now, at most."""
        return (self.used if self.ended else self.most) - self.before


class LiveVerdicts(ProgressView):
    """View of the pairs of a comparison: what the last look at the point under way found.

    A point that is done leaves a line, and at the end each of the others does.
    """

    def __init__(
        self,
        console: Console,
        points: Sequence[Pair],
        gate: GateConfig,
        designs: Mapping[str, PairDesign] | None = None,
        more: Mapping[str, int] | None = None,
        *,
        verbose: bool = False,
    ) -> None:
        self._gate, self._lines = gate, {point.id: _Line(point.name) for point in points}
        for id_, line in self._lines.items():
            line.follow((designs or {}).get(id_, PairDesign()), gate)
            line.until = (more or {}).get(id_, 0)
        super().__init__(console, total=1, verbose=verbose)

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        for line in self._lines.values():
            if line.verdict is not None and not line.ended:
                self._tell(line)

    def _tell(self, line: _Line) -> None:
        """Prints the result of a point: in a log whole, on a terminal as one row if it has many."""
        if self._console.is_terminal and len(self._lines) <= _FEW and not self._verbose:
            return
        text = _whole(line, self._gate)
        if self._console.is_terminal:
            text.truncate(self._console.width, overflow="ellipsis")
        self._print(text)

    def __call__(self, event: Event) -> None:
        """Shows one thing that happened."""
        if isinstance(event, PairJudged):
            verdict = event.verdict
            self._point = verdict.point_id
            line = self._lines[verdict.point_id]
            line.verdict = verdict
            line.ended = verdict.failed or not needs_more(verdict)
            if line.ended:
                self._tell(line)
            if verdict.design is not None and verdict.design != line.design:
                line.follow(verdict.design, self._gate)
            self._counts()
            self._shows()
        else:
            super().__call__(event)

    def _what(self, event: Progress) -> str:
        arm = event.arm or "both arms"
        if event.index is None:
            return f"{arm}, warm-up"
        line = self._lines[event.point.id]
        line.used = max(line.used, _used(line.design, event.index))
        block, slot, operation = line.design.place(event.index)
        what = f"operation {slot + 1} of {BLOCK_SIZE}"
        if line.design.lives:
            of = line.design.operations_per_life
            what = f"life {slot + 1} of {BLOCK_SIZE}, operation {operation + 1} of {of}"
        return f"{arm}, block {block}, {what}"

    def _ended(self, event: Progress, repeat: Repeat) -> None:
        line = self._lines[event.point.id]
        assert event.index is not None
        line.used = max(line.used, _used(line.design, event.index, ended=True))
        if event.reused:
            line.before = line.used
        if event.arm is not None and repeat.first_failed:
            line.failed.setdefault(event.arm, set()).add(event.index)
        failed = repeat.status != "passed" or repeat.first_failed
        if failed or (self._verbose and not event.reused):
            self._print(_outcome(event, repeat))
        self._counts()

    def _counts(self) -> None:
        lines = self._lines.values()
        done = sum(line.used - line.before for line in lines)
        self._advance(done, sum(line.wanted for line in lines))

    def _count(self) -> str:
        ended, left = sum(line.ended for line in self._lines.values()), self._left()
        done = f"{ended}/{count(len(self._lines), 'point')} done"
        return f"{done}, at most {left}" if left else done

    def _known(self) -> str:
        """Returns the result of the last look at the point under way, or when the first one is."""
        line = self._lines.get(self._point)
        if line is None:
            return ""
        if line.verdict is None:
            return f"first look after {line.looks[0]} operations of each arm"
        return _worst(line.verdict) or line.verdict.word


def _whole(line: _Line, gate: GateConfig) -> Text:
    """Returns a point as one line of any length, to be kept."""
    verdict = line.verdict
    assert verdict is not None
    # Times may be settled at a look before the last: what was measured is told by the blocks.
    judged = line.design.operations(verdict.blocks * line.design.block_size)
    judged = max([judged, *(found.count for found in verdict.attempts.values())])
    answer = told(verdict, gate)
    style = {"good": "green", "bad": "bold red", "unsure": "yellow"}.get(answer.role, "")
    made = _attempts(line, verdict, max(line.used, judged))
    said = f"{made} {line.name}: {answer.text}"
    return Text.assemble((answer.said.removesuffix(f": {answer.text}"), style), f" {said}")


def _worst(verdict: PointVerdict) -> str:
    """Returns the change of the operation that is worst off; empty if none has a ratio."""
    worst = nearest_to_trouble(verdict)
    found = None if worst is None else worst.verdict
    if worst is None or found is None or found.ratio is None:
        return ""
    return f"{spoken(worst.operation)} {change(found.ratio, found.low, found.high)}"


def _attempts(line: _Line, verdict: PointVerdict, used: int) -> str:
    """Returns how many operations per arm were made, and how many first attempts failed."""
    failed = {arm: len(found) for arm, found in line.failed.items()}
    failed |= {arm: found.failed for arm, found in verdict.attempts.items()}
    said = ", ".join(f"{arm} {failed[arm]}" for arm in ARMS if failed.get(arm))
    return f"{used}/{line.most}{f' (failed: {said})' if said else ''}"


def _used(design: PairDesign, repeat: int, *, ended: bool = False) -> int:
    """Returns the operations per arm that have ended when a repeat begins or has ended."""
    # The repeats of a block of lives do not end in the order of their numbers, so that only its
    # blocks are counted.
    if design.lives:
        return design.ended(repeat // design.block_size * design.block_size)
    return design.operations(repeat + ended)


def _outcome(event: Progress, repeat: Repeat) -> Text:
    where = f" {event.point.name} {event.arm}, block {event.block}: "
    if repeat.error is not None:
        return Text.assemble((repeat.status, "red"), where, repeat.error.said)
    if repeat.first_failed:
        said = f"{repeat.first_reason}; a retry passed, which counts nowhere"
        return Text.assemble(("failed", "red"), where, said)
    return Text.assemble((repeat.status, "dim"), where, times(repeat))
