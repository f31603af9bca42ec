"""False change points of a history, on raw seconds and on ratios to a reference arm.

`python -m perf.history [--series N] [--runs N] [--seed N] [--json FILE]`

Simulated: nightly paired runs on a machine that is now and then slower for days. Nothing that is
compared ever changes in the first row; in the second the candidate becomes slower half-way. Exit
codes: 0 no target was missed, 1 one was.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from orbax_bench_core.analysis.history.changes import SIGNIFICANCE, change_points
from orbax_bench_core.sweep import BLOCK_SIZE

Floats = npt.NDArray[np.float64]

BLOCKS: Final = 10
NOISE: Final = 0.05
"""Coefficient of variation of one operation."""
SLOW: Final = 1.4
"""Factor by which everything takes longer while the machine is slow."""
DWELLS: Final = (3, 10, 30)
"""Mean number of runs that the machine stays fast, or slow."""
EFFECT: Final = 0.1
"""Slow-down of the candidate in the second row."""
NEAR: Final = 2
"""Runs by which a change may be placed too early or too late."""

MOST_FALSE: Final = 0.07
LEAST_FOUND: Final = 0.95

EXIT_MISSED: Final = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """Shares of series.

    Attributes:
        dwell: Mean number of runs that the machine stays fast, or slow.
        false_raw: Raw seconds in which a change was found though nothing had changed.
        false_ratio: Ratios in which one was found though nothing had changed.
        found_raw: Raw seconds in which the real change was found, and no other.
        found_ratio: Ratios in which it was, and no other.
    """

    dwell: int
    false_raw: float
    false_ratio: float
    found_raw: float
    found_ratio: float

    @property
    def met(self) -> bool:
        """Whether the targets for ratios are met."""
        return self.false_ratio <= MOST_FALSE and self.found_ratio >= LEAST_FOUND


def nightly(
    runs: int, dwell: int, random: np.random.Generator, effect: float = 0.0
) -> tuple[Floats, Floats]:
    """Returns the candidate's median seconds and the log ratio of each run of one series.

    Args:
        runs: Number of runs.
        dwell: Mean number of runs that the machine stays fast, or slow.
        random: Source of chance.
        effect: Relative slow-down of the candidate in the second half of the runs.
    """
    size = BLOCKS * BLOCK_SIZE
    switches = random.random(runs * size) < 1 / (dwell * size)
    slow = ((np.cumsum(switches) + random.integers(2)) % 2).reshape(runs, BLOCKS, BLOCK_SIZE)
    logs = NOISE * random.standard_normal(slow.shape) + math.log(SLOW) * slow
    order = random.random(slow.shape).argsort(axis=2)
    candidate = order < BLOCK_SIZE // 2
    changed = np.arange(runs) >= runs // 2
    logs = logs + math.log1p(effect) * changed[:, None, None] * candidate
    signs = np.where(candidate, 2 / BLOCK_SIZE, -2 / BLOCK_SIZE)
    seconds = np.exp(np.median(logs[candidate].reshape(runs, -1), axis=1))
    return seconds, np.median((logs * signs).sum(axis=2), axis=1)


def simulate(
    series: int, runs: int, dwell: int, seed: int = 0, significance: float = SIGNIFICANCE
) -> Outcome:
    """Counts changes that are found, with and without one to find.

    Args:
        series: Number of series of each kind.
        runs: Runs in each.
        dwell: Mean number of runs that the machine stays fast, or slow.
        seed: Seed of chance.
        significance: Share of exchangeable series in which one may be found without any.
    """

    def share(effect: float, judge: Callable[[list[int]], bool]) -> tuple[float, float]:
        random = np.random.default_rng(seed)
        counts = [0, 0]
        for _ in range(series):
            for kind, values in enumerate(nightly(runs, dwell, random, effect)):
                found = change_points(values.tolist(), significance=significance)
                counts[kind] += judge([change.index for change in found])
        return counts[0] / series, counts[1] / series

    def found_it(places: list[int]) -> bool:
        return len(places) == 1 and abs(places[0] - runs // 2) <= NEAR

    false_raw, false_ratio = share(0.0, bool)
    found_raw, found_ratio = share(EFFECT, found_it)
    return Outcome(
        dwell=dwell,
        false_raw=false_raw,
        false_ratio=false_ratio,
        found_raw=found_raw,
        found_ratio=found_ratio,
    )


def table(outcomes: Sequence[Outcome]) -> Table:
    """Returns the outcomes with their targets."""
    shown = Table("share of series", "slow or fast for", "raw seconds", "ratios", "target", "met?")
    for outcome in outcomes:
        shown.add_row(
            "nothing changes, and a change is found",
            f"{outcome.dwell} runs",
            f"{outcome.false_raw:.1%}",
            f"{outcome.false_ratio:.1%}",
            f"ratios ≤ {MOST_FALSE:.0%}",
            "yes" if outcome.false_ratio <= MOST_FALSE else "no",
        )
    for outcome in outcomes:
        shown.add_row(
            f"{EFFECT:.0%} slower half-way, and that alone is found, within {NEAR} runs",
            f"{outcome.dwell} runs",
            f"{outcome.found_raw:.1%}",
            f"{outcome.found_ratio:.1%}",
            f"ratios ≥ {LEAST_FOUND:.0%}",
            "yes" if outcome.found_ratio >= LEAST_FOUND else "no",
        )
    return shown


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulates, prints the table, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.history", description=__doc__)
    parser.add_argument("--series", type=int, default=100, help="series of each kind")
    parser.add_argument("--runs", type=int, default=100, help="runs in each series")
    parser.add_argument("--seed", type=int, default=0, help="seed of chance")
    parser.add_argument(
        "--significance", type=float, default=SIGNIFICANCE, help="as of `orbax-bench history`"
    )
    parser.add_argument("--json", type=Path, help="write the shares there, too")
    options = parser.parse_args(arguments)
    outcomes = [
        simulate(options.series, options.runs, dwell, options.seed, options.significance)
        for dwell in DWELLS
    ]
    Console(width=None if sys.stdout.isatty() else 140).print(table(outcomes))
    if options.json is not None:
        found = [dataclasses.asdict(outcome) for outcome in outcomes]
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(outcome.met for outcome in outcomes) else EXIT_MISSED


if __name__ == "__main__":
    sys.exit(main())
