"""Figures of the statistical gate, by simulation and by replay, with a fixed seed.

`python -m perf.gate [--quick] [--jobs N] [--state FILE] [--json FILE]`

All of it takes a quarter of an hour or more on two idle cores, `--quick` about three minutes. With
`--state` every cell that is done is kept in FILE, and the same command goes on where it was
interrupted, for as long as the code of the gate stays the same. Exit codes: 0 every target is met,
1 one is not.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import functools
import hashlib
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from orbax_bench_core import config, gate
from perf import history, side_rules
from perf.figure import end, figure_parser, figure_table, positive
from perf.gate.cells import Cell, Part, Tally
from perf.gate.choices import choice_figures
from perf.gate.experiments import run
from perf.gate.figures import cells, claims, rival_table
from perf.gate.replay import read_series
from perf.gate.sources import Sources
from perf.lines import add_line, read_lines

SERIES: Final = 4000
QUICK: Final = 200

_PART: Final = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries everything out, prints the tables, and returns the exit code."""
    options = _parser().parse_args(arguments)
    began = time.monotonic()
    sources = Sources.of(read_series())
    series = QUICK if options.quick else SERIES
    claimed = claims(sources, series, quick=options.quick)
    tallies = try_out(cells(claimed, sources, series), options.jobs, options.state)
    found = [
        *(claim.figure(tallies) for claim in claimed),
        *side_rules.side_figures(quick=options.quick),
        *history.history_figures(quick=options.quick),
        *choice_figures(quick=options.quick),
    ]
    rivals = rival_table(tallies, sources, series)
    missed = [figure for figure in found if figure.met is False]
    judged = sum(figure.met is not None for figure in found)
    took = time.monotonic() - began
    return end(
        found,
        *(source_table(sources), alarm_table(rivals), figure_table(found)),
        *(("Missed:", figure_table(missed)) if missed else ()),
        f"{judged - len(missed)} of {judged} targets met, in {took:.0f} s",
        file=options.json,
        plain={
            "python": sys.version,
            "series": series,
            "false_alarms": rivals,
            "figures": [dataclasses.asdict(figure) for figure in found],
        },
    )


def try_out(wanted: Sequence[Cell], jobs: int, state: Path | None = None) -> dict[str, Tally]:
    """Counts every cell, with a progress bar on stderr, the same by any number of processes.

    Cells that are done are kept in `state`, a line each; those that it has are not tried again.
    """
    tallies = _kept(wanted, state)
    open_ = [cell for cell in wanted if cell.key not in tallies]
    parts = [part for cell in open_ for part in cell.parts(_PART)]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    shown = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
    with shown as progress, _mapper(jobs) as results_of:
        task = progress.add_task("comparing", total=len(parts))
        results = iter(results_of(parts))
        for cell in open_:
            tally = Tally()
            for _ in cell.parts(_PART):
                tally += next(results)
                progress.update(task, advance=1, description=f"{cell.kind}, {cell.name}")
            tallies[cell.key] = tally
            if state is not None:
                row = {"code": _code(), "cell": cell.key, "tally": dataclasses.asdict(tally)}
                add_line(state, row)
    return tallies


def _kept(wanted: Sequence[Cell], state: Path | None) -> dict[str, Tally]:
    """Returns the cells that are done."""
    keys = {cell.key: cell.series for cell in wanted}
    return {
        row["cell"]: Tally(**row["tally"])
        for row in (read_lines(state) if state is not None else ())
        if row["code"] == _code() and keys.get(row["cell"]) == row["tally"]["series"]
    }


@functools.cache
def _code() -> str:
    """Returns a digest of the gate and of what tries it, with which counts stand and fall."""
    here = Path(__file__).parent
    rooms = (here, Path(gate.__file__).parent, Path(config.__file__).parent)
    digest = hashlib.sha256()
    for file in sorted(file for room in rooms for file in room.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _mapper(jobs: int) -> Iterator[Callable[[list[Part]], Iterable[Tally]]]:
    if jobs == 1:
        yield lambda parts: map(run, parts)
        return
    # Matrices are small: threads of BLAS would take the cores that the other processes compute on.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
        yield lambda parts: pool.map(run, parts)


def source_table(sources: Sources) -> Table:
    """Returns what the replayed series are like."""
    shown = Table("replayed series", "values", "CV", "lag-1 correlation", "as measured?")
    for series in (*sources.real, *sources.wild, *sources.wilder):
        shown.add_row(
            series.name,
            str(len(series.times)),
            f"{series.variation:.0%}",
            f"{series.correlation:.2f}",
            "yes" if series.real else "stretched",
        )
    return shown


def alarm_table(rivals: Mapping[str, Mapping[str, float]]) -> Table:
    """Returns the share of false alarms of each rule on identical arms, in percent."""
    names = list(next(iter(rivals.values())))
    shown = Table("false alarms at 1.00, %", *names)
    for rule, row in rivals.items():
        cells = [f"{100 * row[name]:.1f}" for name in names]
        shown.add_row(rule, *cells, style="bold" if "paired" in rule else None)
    return shown


def _parser() -> argparse.ArgumentParser:
    quick = f"{QUICK} comparisons per cell instead of {SERIES}"
    parser = figure_parser("perf.gate", __doc__, quick)
    parser.add_argument(
        "--jobs", type=positive, default=2, metavar="N", help="processes (default 2)"
    )
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="keep what is done here, and go on from there"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
