"""Figures of `orbax-bench best`, by simulation with a fixed seed.

`python -m perf.best [--quick] [--json FILE]`

Made-up studies have 64 points, all combinations of six options of two values, and a drift that
whole rounds share; two points that differ from process to process are in `perf.gate.choices`. All
of it takes some minutes, `--quick` a quarter of a minute. Exit codes: 0 every target is met, 1 one
is not.
"""

import itertools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Final, Literal

import numpy as np

from orbax_bench_core.analysis import best
from orbax_bench_core.config import ExecutionConfig
from perf.figure import Figure, at_least, at_most, end_simulated, figure_parser
from perf.gate.noise import Floats

STUDIES: Final = 1000
QUICK: Final = 25
OPTIONS: Final = 6
POINTS: Final = 2**OPTIONS

Noise = Literal["normal", "t3"]
NOISES: Final[tuple[Noise, ...]] = ("normal", "t3")

_SIGNS: Final = np.array(list(itertools.product((-1, 1), repeat=OPTIONS)), dtype=np.float64)
_LAYOUT: Final = best.FactorialLayout(
    levels={f"option {place}": (False, True) for place in range(OPTIONS)},
    rows=tuple(itertools.product((0, 1), repeat=OPTIONS)),
)
_DRIFT: Final = 0.1
"""Standard deviation of the step of the machine's speed from round to round, on the log scale."""
_MEANS_ROUNDS: Final = (6, 10, 14, 20, 24, 28, 34, 40, 50, 60, 80)
_FOUND: Final = 0.95
_CLAIMED: Final[tuple[tuple[int, Noise], ...]] = ((10, "normal"), (30, "normal"), (30, "t3"))
"""Rounds and noise of the sweeps that state a risk."""
_EXECUTION: Final = ExecutionConfig()
_MOST_MISSING: Final = 400
"""More rounds than these are not simulated."""


_STRONG: Final = (1.4, 1.25, 1.12, 1.06, 1.03, 1.0)
"""Ratios of options of which two matter much, and others less."""
_WEAK: Final = (1.1, 1.08, 1.06, 1.05, 1.03, 1.02)


def _triples(rng: np.random.Generator) -> Floats:
    """Returns log times in which three options interact as well, which no fit by pairs sees."""
    times = _planted(rng, _STRONG)
    for triple in itertools.combinations(range(OPTIONS), 3):
        if rng.random() < 0.3:
            times = times + _SIGNS[:, triple].prod(axis=1) * rng.normal(0, 0.03)
    return times


def _planted(rng: np.random.Generator, ratios: Sequence[float]) -> Floats:
    """Returns log times of options with these ratios, in any order; some pairs interact."""
    times = _SIGNS @ (np.log(rng.permutation(ratios)) / 2 * rng.choice((-1, 1), OPTIONS))
    for first, second in itertools.combinations(range(OPTIONS), 2):
        if rng.random() < 0.3:
            times = times + _SIGNS[:, first] * _SIGNS[:, second] * rng.normal(0, 0.04)
    return np.asarray(times, dtype=np.float64)


LANDSCAPES: Final[dict[str, Callable[[np.random.Generator], Floats]]] = {
    "few options": lambda rng: _planted(rng, _STRONG),
    "many weak options": lambda rng: _planted(rng, _WEAK),
    "triples": _triples,
    "no law": lambda rng: rng.normal(0, 0.25, POINTS),
}


def is_near(times: Floats, chosen: int) -> bool:
    """Returns whether a point is within 5 % of the planted best."""
    return bool(times[chosen] <= times.min() + best.NEAR)


def measured_logs(
    rng: np.random.Generator, times: Floats, variation: float, rounds: int, noise: Noise = "normal"
) -> Floats:
    """Returns measured log times, shape (rounds, points), with drift between the rounds."""
    sigma = math.sqrt(math.log1p(variation**2))
    shape = (rounds, len(times))
    drawn = rng.standard_normal(shape)
    if noise == "t3":
        drawn = rng.standard_t(3, shape) / math.sqrt(3)
    drift = np.cumsum(rng.normal(0, _DRIFT, rounds))
    return np.asarray(times + sigma * drawn + drift[:, None], dtype=np.float64)


def sweep_figures(studies: int, seed: int = 0) -> list[Figure]:
    """Returns the fewest repeats, at CV 15 %, of a sweep that finds a good point in 95 %."""
    found = []
    for name, landscape in LANDSCAPES.items():
        rng = np.random.default_rng(seed)
        planted = [landscape(rng) for _ in range(studies)]
        logs = [measured_logs(rng, times, 0.15, max(_MEANS_ROUNDS)) for times in planted]
        rounds = _rounds_needed(planted, logs)
        repeats = math.nan if rounds is None else float(POINTS * rounds)
        group = "repeats of a full sweep that finds it in 95 %"
        found.append(Figure(group=group, name=name, value=repeats, share=False))
    return found


def _rounds_needed(planted: Sequence[Floats], logs: Sequence[Floats]) -> int | None:
    """Returns the fewest rounds with which a full sweep finds a good point; None if none do."""
    for number in _MEANS_ROUNDS:
        near = sum(
            is_near(times, _by_means(each[:number]))
            for times, each in zip(planted, logs, strict=True)
        )
        if near >= _FOUND * len(planted):
            return number
    return None


def _by_means(logs: Floats) -> int:
    return int(logs.mean(axis=0).argmin())


def _by_process(logs: Floats) -> Floats:
    return best.by_process(logs, [_EXECUTION.process_of(at) for at in range(len(logs))])


def _confidence(logs: Floats, chosen: int, rounds: int) -> best.Confidence:
    return best.separation(logs, chosen, rounds=rounds, execution=_EXECUTION)


def missing_figures(studies: int, seed: int = 1) -> list[Figure]:
    """Returns how many rounds sweeps at CV 30 % say are missing, and whether these are enough."""
    found = []
    group = "sweep, CV 30 %, 30 rounds"
    for name, landscape in LANDSCAPES.items():
        rng = np.random.default_rng(seed)
        missing, near = [], 0
        for _ in range(studies):
            times = landscape(rng)
            logs = measured_logs(rng, times, 0.3, 30)
            more = _confidence(_by_process(logs), _by_means(logs), len(logs)).missing
            if more != 0:
                missing.append(_MOST_MISSING if more is None else min(more, _MOST_MISSING))
                longer = np.vstack([logs, measured_logs(rng, times, 0.3, missing[-1])])
                near += is_near(times, _by_means(longer))
        if missing:
            said, middle = f"{name}: median of the rounds that are missing", np.median(missing)
            found.append(Figure(group=group, name=said, value=float(middle), share=False))
            said = f"{name}: within 5 % after the rounds that are missing"
            found.append(at_least(group, said, near, len(missing), 0.9))
    return found


def tie_figures(studies: int, seed: int = 2) -> list[Figure]:
    """Returns how often the true best is among the ties."""
    found = []
    group = "the true best is among the ties"
    for points, rounds in ((16, 4), (16, 10), (64, 6), (64, 20)):
        for noise in NOISES:
            kept = 0
            rng = np.random.default_rng(seed)
            for study in range(studies):
                # In turns: all equal, one ahead by 10 %, a ladder of 3 %.
                step = (0.0, 0.0, 0.03)[study % 3]
                times = step * np.arange(points, dtype=np.float64)
                times[1:] += 0.1 * (study % 3 == 1)
                logs = measured_logs(rng, times, 0.15, rounds, noise)
                values = {
                    f"{place:02d}": dict(enumerate(np.exp(column)))
                    for place, column in enumerate(logs.T)
                }
                processes = {at: _EXECUTION.process_of(at) for at in range(rounds)}
                ranked = {each.point_id: each for each in best.rank(values, processes)}
                # Of equal points each is best; the last by name must stay as likely as another.
                true = f"{points - 1:02d}" if study % 3 == 0 else "00"
                kept += ranked[true].tied is not False
            name = f"{points} points, {rounds} rounds, {noise}"
            found.append(at_least(group, name, kept, studies, 1 - best.LEVEL))
    return found


def effect_figures(studies: int, seed: int = 3) -> list[Figure]:
    """Returns how often intervals of effects hold the truth, and how often chance matters."""
    found = []
    for rounds in (3, 6, 14):
        for noise in NOISES:
            rng = np.random.default_rng(seed)
            held = total = alarms = 0
            for _ in range(studies):
                ratios = rng.permutation(_STRONG)
                times = _SIGNS @ (np.log(ratios) / 2)
                logs = measured_logs(rng, times, 0.15, rounds, noise)
                seen = best.analyse(_LAYOUT, _by_process(logs))
                for contrast, true in zip(seen.effects, ratios, strict=True):
                    held += bool(contrast.low <= true <= contrast.high)
                    total += 1
                alarms += any(contrast.matters for contrast in seen.interactions)
            name = f"{rounds} rounds, {noise}"
            found += [
                at_least("intervals of main effects hold the truth", name, held, total, 0.95),
                at_most("any of 15 pairs matters without cause", name, alarms, studies, 0.05),
            ]
    return sorted(found, key=lambda figure: figure.group)


def claim_figures(studies: int, seed: int = 4) -> list[Figure]:
    """Returns how often a point is within 5 % when a full sweep says that the risk is 5 %."""
    found = []
    group = "within 5 %, where a full sweep says so at a risk of 5 %"
    for name, landscape in LANDSCAPES.items():
        for rounds, noise in _CLAIMED:
            rng = np.random.default_rng(seed)
            near = said = 0
            for _ in range(studies):
                times = landscape(rng)
                logs = measured_logs(rng, times, 0.15, rounds, noise)
                chosen = _by_means(logs)
                risk = _confidence(_by_process(logs), chosen, rounds).risk
                if risk is not None and risk <= best.LEVEL:
                    said += 1
                    near += is_near(times, chosen)
            if said >= 20:
                label = f"{name}, {rounds} rounds, {noise}: {said} of {studies}"
                found.append(at_least(group, label, near, said, 1 - best.LEVEL))
    return found


def best_figures(*, quick: bool) -> list[Figure]:
    """Returns all figures of this module."""
    studies = QUICK if quick else STUDIES
    tables = (sweep_figures, missing_figures, tie_figures, effect_figures, claim_figures)
    return [figure for make in tables for figure in make(studies)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulates, prints the table, and returns the exit code."""
    quick = f"{QUICK} studies, not {STUDIES}"
    options = figure_parser("perf.best", __doc__, quick).parse_args(arguments)
    return end_simulated(best_figures(quick=options.quick), options.json)


if __name__ == "__main__":
    sys.exit(main())
