"""Figures of the rules beside the gate: unpaired warnings, health flags, release search, workers.

`python -m perf.side_rules [--quick]`

Simulated, with a fixed seed. Each function returns rows with a claimed bound. Exit codes: 0 every
target is met, 1 one is not.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from rich.console import Console

from orbax_bench_core.analysis.noise import between_workers
from orbax_bench_core.analysis.releases import ReleaseWord
from orbax_bench_core.config import GateConfig, GateRule
from orbax_bench_core.gate import decide_unpaired, health, judge, random_labels
from orbax_bench_core.steps.releases import Found, search_releases
from perf.figure import Figure, at_least, at_most, figure_table, shown

Floats = npt.NDArray[np.float64]

EXIT_MISSED: Final = 1

PAST: Final = 4
"""Past ratios of an unpaired comparison: the fewest that are taken."""

RELEASES: Final = 10
STEPS: Final[Mapping[str, Mapping[int, float]]] = {
    "+50 %": {5: 0.5},
    "+20 %": {5: 0.2},
    "+10 %": {5: 0.1},
    "+6 %, then +50 %": {3: 0.06, 7: 0.5},
    "+10 %, then +50 %": {3: 0.1, 7: 0.5},
    "+10 %, then +10 %": {3: 0.1, 7: 0.1},
}
"""Slow-downs that are planted, by the release that has each."""

_PRIMARY: Final = "save"
_PROMISED: Final = 0.2
"""Share by which runs may be off where an unpaired comparison without a past keeps its level."""


def unpaired_figures(series: int, seed: int = 0) -> list[Figure]:
    """Returns how often a run like all before it is a warning, with the fewest past ratios.

    The margin is as good as none, so that only the past decides.
    """
    rng, rule = np.random.default_rng(seed), GateRule(tolerance=0.0, margin=1e-9)
    found = []
    for noise, limit in (("normal", 0.01), ("t3", 0.025)):
        draws = 0.05 * _noise(rng, noise, (series, PAST + 1))
        alarms = sum(
            decide_unpaired([1.0], [math.exp(now)], past, rule).word == "REGRESSION"
            for *past, now in draws
        )
        group = f"unpaired warnings without a change, {PAST} past ratios"
        found.append(at_most(group, noise, alarms, series, limit))
    return found


def first_use_figures(series: int, seed: int = 0) -> list[Figure]:
    """Returns how often two runs of the same thing are a regression, or faster, without a past.

    Its level holds for runs that are off by up to 20 %; beyond, it is shown.
    """
    found = []
    for name, between, within, rho in (
        ("operations 50 %", 0.0, 0.5, 0.0),
        ("runs 20 %, operations 20 %", 0.2, 0.2, 0.0),
        ("runs 20 %, operations 20 %, correlation 0.6", 0.2, 0.2, 0.6),
        ("runs 30 %, operations 20 %", 0.3, 0.2, 0.0),
    ):
        for length in (3, 5, 10):
            rng = np.random.default_rng(seed)
            words = [
                decide_unpaired(*_two_runs(rng, length, between, within, rho), ()).word
                for _ in range(series)
            ]
            name_ = f"{name}, n = {length}"
            wrong, kept = words.count("REGRESSION"), between <= _PROMISED
            group = "REGRESSION of two runs of the same, no past"
            found.append(
                at_most(group, name_, wrong, series, 0.01)
                if kept
                else shown(group, name_, wrong, series)
            )
    for slow_down in (3.0, 5.8):
        for length in (3, 5, 10):
            rng = np.random.default_rng(seed)
            runs = (_two_runs(rng, length, 0.0, 0.2, 0.0) for _ in range(series))
            right = sum(
                decide_unpaired(before, slow_down * now, ()).beyond_runs for before, now in runs
            )
            found.append(shown(f"{slow_down:g}x is found, no past", f"n = {length}", right, series))
    return found


def _two_runs(
    rng: np.random.Generator, length: int, between: float, within: float, rho: float
) -> Floats:
    """Returns lognormal operations of two runs, each of which is off by a factor of its own."""
    offsets = between * rng.standard_normal((2, 1))
    return np.asarray(np.exp(offsets + within * autoregressive(rng, 2, length, rho)))


def health_figures(series: int, seed: int = 0) -> list[Figure]:
    """Returns how often a series that only wanders is flagged as drifting, or for outliers."""
    rng = np.random.default_rng(seed)
    found = []
    for length in (20, 60):
        for rho in (0.0, 0.6, 0.8):
            rows = 0.1 * autoregressive(rng, series, length, rho)
            flags = [health(np.exp(row)).flags for row in rows]
            for group, word in (("drift", "drifts"), ("outlier", "far from")):
                count = sum(any(word in flag for flag in each) for each in flags)
                name = f"n = {length}, correlation {rho:g}"
                found.append(at_most(f"{group} flags without a cause", name, count, series, 0.05))
        drifting = [
            health(np.exp(0.05 * rng.standard_normal(length)) * np.linspace(1, 1.3, length))
            for _ in range(series)
        ]
        count = sum(each.drifts for each in drifting)
        found.append(shown("drifts of 30 % that are flagged", f"n = {length}", count, series))
    return found


def autoregressive(rng: np.random.Generator, series: int, length: int, rho: float) -> Floats:
    """Returns normal series of unit variance with a correlation from one value to the next."""
    values = rng.standard_normal((series, length))
    for now in range(1, length):
        values[:, now] = rho * values[:, now - 1] + math.sqrt(1 - rho**2) * values[:, now]
    return values


def search_figures(series: int, variation: float = 0.05, seed: int = 0) -> list[Figure]:
    """Returns how often a search names a release that is as the one before it.

    Args:
        series: Searches for each plan of slow-downs.
        variation: Coefficient of variation of one operation.
        seed: Seed of chance.
    """
    found = []
    for name, steps in STEPS.items():
        rng = np.random.default_rng(seed)
        answers = [simulated_search(steps, variation, rng) for _ in range(series)]
        named = [int(each.first_bad or 0) for each in answers if each.conclusion == "named"]
        ranges = sum(each.conclusion == "range" for each in answers)
        group = f"release search, CV {variation:.0%}"
        wrong = sum(release not in steps for release in named)
        found += [
            at_most(f"{group}: unchanged release named", name, wrong, series, 0.01),
            shown(f"{group}: named rightly", name, len(named) - wrong, series),
            shown(f"{group}: a range", name, ranges, series),
        ]
    return found


def simulated_search(
    steps: Mapping[int, float], variation: float, rng: np.random.Generator
) -> Found:
    """Searches ten releases with planted slow-downs, by the rules of `orbax-bench bisect`."""
    levels = np.cumsum([math.log1p(steps.get(release, 0.0)) for release in range(RELEASES)])
    margins: dict[str, float] = {}
    last = str(RELEASES - 1)
    asked: set[tuple[str, str]] = set()

    def outcome(release: str, against: str) -> ReleaseWord:
        confirming = (release, against) in asked
        asked.add((release, against))
        raised = against in margins and release != last and not confirming
        gate = GateConfig(primary=(_PRIMARY,), margin=margins[against] if raised else 0.15)
        ratio = math.exp(levels[int(release)] - levels[int(against)])
        verdict = _compared(ratio, variation, gate, rng)
        if release == last and verdict.word == "REGRESSION":
            margins[against] = max(0.15, math.sqrt(verdict.low or 1.0) - 1)
        word: ReleaseWord = verdict.word
        return word

    return search_releases([str(release) for release in range(RELEASES)], outcome)


def _compared(ratio: float, variation: float, gate: GateConfig, rng: np.random.Generator) -> Any:
    """Returns the verdict of one comparison of up to 60 operations per arm."""
    blocks = gate.looks[-1] // 2
    labels = random_labels(blocks, rng)
    noise = math.sqrt(math.log1p(variation**2)) * rng.standard_normal((blocks, 4))
    times = np.exp(noise + math.log(ratio) * labels)
    return judge({_PRIMARY: times}, labels, gate).operations[_PRIMARY]


def worker_figures(series: int, seed: int = 0) -> list[Figure]:
    """Returns how often the interval of the process noise holds the truth: 15 blocks of 4 lives."""
    rng, found = np.random.default_rng(seed), []
    for tau in (0.0, 0.02, 0.05):
        held = 0
        for _ in range(series):
            table = 0.05 * rng.standard_normal((15, 4, 2)) + tau * rng.standard_normal((15, 4, 1))
            component = between_workers(table)
            assert component is not None
            held += component.low <= tau <= component.high
        group = "intervals of process noise that hold the truth"
        found.append(at_least(group, f"tau {tau:.0%}, sigma 5 %", held, series, 0.95))
    return found


def _noise(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> Floats:
    return rng.standard_normal(shape) if name == "normal" else rng.standard_t(3, shape)


def side_figures(*, quick: bool) -> list[Figure]:
    """Returns all figures of this module, in about half a minute when quick."""
    tables: list[Callable[[], list[Figure]]] = [
        lambda: unpaired_figures(2000 if quick else 40000),
        lambda: first_use_figures(200 if quick else 2000),
        lambda: health_figures(100 if quick else 1000),
        lambda: worker_figures(400 if quick else 4000),
        lambda: search_figures(10 if quick else 200),
        lambda: [] if quick else search_figures(100, 0.2),
    ]
    return [figure for make in tables for figure in make()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulates, prints the table, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.side_rules", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the series")
    options = parser.parse_args(arguments)
    figures = side_figures(quick=options.quick)
    Console(width=None if sys.stdout.isatty() else 140).print(figure_table(figures))
    return EXIT_MISSED if any(figure.met is False for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
