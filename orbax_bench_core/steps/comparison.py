"""Measures both arms of a suite and judges them, until every point has its verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from orbax_bench_core.analysis.verdicts import (
    PointVerdict,
    VerdictReport,
    judge_point,
    needs_more,
    report,
    version_differences,
)
from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.execute import Progress, RunSettings, run_pairs
from orbax_bench_core.records import (
    VERDICTS_FILE,
    RunDirectory,
    RunInfo,
    repeats_of,
    write_atomically,
)
from orbax_bench_core.sweep import Pair


class Watcher(Protocol):
    """Whoever watches a comparison."""

    def __call__(self, progress: Progress) -> None:
        """Is told of every repeat."""

    def judged(self, verdict: PointVerdict) -> None:
        """Is told of every look at a point."""


def compare_arms(
    run: RunDirectory,
    info: RunInfo,
    loaded: LoadedSuite,
    points: Sequence[Pair],
    settings: RunSettings,
    watch: Watcher,
    say: Callable[[str], None],
) -> VerdictReport:
    """Runs blocks of both arms until each point has a verdict or the last look is made.

    After each look at a whole run, the verdicts so far are in `verdicts.json`.

    Args:
        run: The run directory.
        info: What its `run.json` says.
        loaded: The suite, with arms.
        points: Its pairs, all or some of them.
        settings: How to run them.
        watch: Told of every repeat and of every look.
        say: Takes a line for people.

    Raises:
        CannotRecord: A record could not be written.
    """
    verdicts: dict[str, PointVerdict] = {}
    notes: list[str] = []
    starts: dict[str, list[float]] = {point.id: [] for point in points}

    def settled(point: Pair, seconds: Sequence[float]) -> bool:
        starts[point.id] += seconds
        records = run.point_records(point)
        verdict = judge_point(point, repeats_of(records), info, _switching(starts[point.id]))
        notes.extend(version_differences(records))
        verdicts[point.id] = verdict
        if len(points) == len(info.expansion.points):  # several steps would overwrite each other
            write_verdicts(run, report(info, list(verdicts.values()), notes))
        watch.judged(verdict)
        return not needs_more(verdict, info.gate)

    run_pairs(run, info, loaded, points, settings, watch, say, settled)
    return report(info, [verdicts[point.id] for point in points], notes)


def write_verdicts(run: RunDirectory, verdicts: VerdictReport) -> None:
    """Writes `verdicts.json`."""
    write_atomically(run.root / VERDICTS_FILE, verdicts.model_dump_json(indent=1).encode())


def _switching(starts: Sequence[float]) -> str:
    if not starts:
        return ""
    return (
        f"The arms could not be held at the same time and took turns: workers were started "
        f"{len(starts)} more times, which took {sum(starts):.0f} s outside the operations."
    )
