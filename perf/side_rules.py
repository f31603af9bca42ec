"""Figures of the rules beside the gate: unpaired warnings, health flags, release search, workers.

`python -m perf.side_rules [--quick] [--json FILE]`

Simulated, with a fixed seed. Each function returns rows with a claimed bound. Exit codes: 0 every
target is met, 1 one is not.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from orbax_bench_core.analysis.noise import between_workers
from orbax_bench_core.analysis.releases import ReleaseWord
from orbax_bench_core.config import GateConfig, GateRule
from orbax_bench_core.experiments.releases import Found, search_releases
from orbax_bench_core.gate import decide_unpaired, health, judge, random_labels
from perf.figure import Figure, at_least, at_most, end_simulated, figure_parser, shown
from perf.gate.noise import Floats, autoregressive

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
    shape = (series, PAST + 1)
    for noise, drawn, limit in (
        ("normal", rng.standard_normal(shape), 0.01),
        ("t3", rng.standard_t(3, shape), 0.025),
    ):
        alarms = sum(
            decide_unpaired([1.0], [math.exp(now)], past, rule).word == "REGRESSION"
            for *past, now in 0.05 * drawn
        )
        group = f"unpaired warnings without a change, {PAST} past ratios"
        found.append(at_most(group, noise, alarms, series, limit))
    return found


def first_use_figures(series: int, seed: int = 0) -> list[Figure]:
    """Returns how often two runs of the same thing are a regression, without a past."""
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
            group = "REGRESSION of two runs of the same, no past"
            of = (group, f"{name}, n = {length}", words.count("REGRESSION"), series)
            # Its level holds for runs that are off by so much; beyond, it is shown.
            found.append(at_most(*of, 0.01) if between <= _PROMISED else shown(*of))
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
            for group, code in (("drift", "drifts"), ("outlier", "outliers")):
                count = sum(any(flag.code == code for flag in each) for each in flags)
                name = f"n = {length}, correlation {rho:g}"
                found.append(at_most(f"{group} flags without a cause", name, count, series, 0.05))
        drifting = [
            health(np.exp(0.05 * rng.standard_normal(length)) * np.linspace(1, 1.3, length))
            for _ in range(series)
        ]
        count = sum(each.drifts for each in drifting)
        found.append(shown("drifts of 30 % that are flagged", f"n = {length}", count, series))
    return found


def search_figures(series: int, variation: float = 0.05, seed: int = 0) -> list[Figure]:
    """Returns how often a search names a release that is as the one before it.

    `variation` is the coefficient of variation of one operation.
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


def side_figures(*, quick: bool) -> list[Figure]:
    """Returns all figures of this module, in about half a minute when quick."""
    return [
        *unpaired_figures(2000 if quick else 40000),
        *first_use_figures(200 if quick else 2000),
        *health_figures(100 if quick else 1000),
        *worker_figures(400 if quick else 4000),
        *search_figures(10 if quick else 200),
        *([] if quick else search_figures(100, 0.2)),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulates, prints the table, and returns the exit code."""
    parser = figure_parser("perf.side_rules", __doc__, "a twentieth of the series")
    options = parser.parse_args(arguments)
    return end_simulated(side_figures(quick=options.quick), options.json)


if __name__ == "__main__":
    sys.exit(main())
