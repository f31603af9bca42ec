"""Flags of a history by simulation: false ones, delays, and the thresholds themselves.

`python -m perf.history [--quick] [--thresholds] [--json FILE]`

Simulated: nightly runs that hold still, or become slower after some quiet nights, and paired runs
on a machine that is now and then slower for days. `--thresholds` computes the constants of
`orbax_bench_core.analysis.history.changes` again, which takes some minutes. Exit codes: 0 no target
was missed, 1 one was.
"""

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from scipy.special import ndtri

from orbax_bench_core import gate
from orbax_bench_core.analysis.history import changes
from orbax_bench_core.config import BLOCK_SIZE, PER_ARM, GateConfig
from perf.figure import ERRORS, Figure, at_least, at_most, end_simulated, figure_parser, shown
from perf.gate.noise import Floats, autoregressive

BLOCKS: Final = 10
NOISE: Final = 0.05
"""Coefficient of variation of one operation."""
NIGHTLY: Final = 0.03
"""Noise of the ratio of one night."""
SLOW: Final = 1.4
"""Factor by which everything takes longer while the machine is slow."""
DWELLS: Final = (3, 10, 30)
"""Mean number of runs that the machine stays fast, or slow."""
QUIET: Final = (20, 40)
"""Nights before the step."""
FOUND: Final[tuple[tuple[float, int, float | None], ...]] = (
    (0.05, 10, None),
    (0.05, 20, 0.8),
    (0.1, 10, 0.75),
)
"""Steps, nights within which they are to be flagged, and the least share of them that is."""

CORRELATIONS: Final = (0.0, 0.3, 0.6, 0.8)
"""Of the offset of a night with that of the next one."""
OFFSETS: Final = (0.01, 0.03, 0.06)
"""Standard deviations of these offsets; what else moves the ratio of a night is `OWN`."""
OWN: Final = 0.02
SETTLED: Final = 90
"""Nights before a step among nights that depend on each other."""

RARE: Final = (
    ("failures", 0.05, 0.05, 14),
    ("failures", 0.0, 0.05, 7),
    ("stalls", 0.03, 0.03, 14),
    ("stalls", 0.0, 0.05, 7),
)
"""Shares of the saves of both arms that are bad, and the nights."""
MOST_BLOCKS: Final = 50
FIRST_LOOK: Final = 10
STALLED: Final = 5.0

LEVELS: Final = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)

_PART: Final = 4000


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


def stationary_figures(series: int, seed: int = 0) -> list[Figure]:
    """Returns how many series without any change are ever flagged."""
    rng, found = np.random.default_rng(seed), []
    for name in ("normal", "t2"):
        shape = (series, changes.SEASON)
        table = rng.standard_normal(shape) if name == "normal" else rng.standard_t(2, shape)
        count = sum(bool(_flags(row)) for row in table)
        group = f"stationary series ever flagged in {changes.SEASON} nights"
        found.append(at_most(group, name, count, series, changes.SIGNIFICANCE))
    return found


def delay_figures(series: int, seed: int = 0) -> list[Figure]:
    """Returns how soon a step is flagged, by nights before it and its size."""
    rng, found = np.random.default_rng(seed), []
    for quiet in QUIET:
        for size, within, least in FOUND:
            nights = quiet + within
            table = NIGHTLY * rng.standard_normal((series, nights))
            table[:, quiet:] += math.log1p(size)
            count = sum(any(flag.night >= quiet for flag in _flags(row)) for row in table)
            group, name = f"steps flagged within {within} nights", f"{size:+.0%} after {quiet}"
            of = (group, name, count, series)
            found.append(shown(*of) if least is None else at_least(*of, least))
    return found


def dependent_figures(years: int, seed: int = 0) -> list[Figure]:
    """Returns the flags in a year without any change, where nights depend on each other."""
    found = []
    for correlation, offset in _dependent():
        rng = np.random.default_rng(seed)
        rows = _offset_nights(rng, years, changes.YEAR, correlation, offset)
        counts = np.array([len(_flags(row)) for row in rows])
        mean, error = float(counts.mean()), float(counts.std()) / math.sqrt(years)
        figure = Figure(
            group="flags in a year without a change",
            name=_dependence(correlation, offset),
            value=mean,
            error=error,
            target="≤ 1 + Monte Carlo error",
            met=mean <= 1 + ERRORS * max(error, 1 / years),
            share=False,
        )
        found.append(figure)
    return found


def dependent_delay_figures(series: int, seed: int = 0) -> list[Figure]:
    """Returns how soon a step is flagged where nights depend on each other."""
    found = []
    for correlation, offset in _dependent():
        for size in (0.05, 0.1, 0.2):
            rng = np.random.default_rng(seed)
            rows = _offset_nights(rng, series, SETTLED + 20, correlation, offset)
            rows[:, SETTLED:] += math.log1p(size)
            nights = [[flag.night for flag in _flags(row)] for row in rows]
            for within in (5, 10, 20):
                until = range(SETTLED, SETTLED + within)
                count = sum(any(night in until for night in row) for row in nights)
                name = f"{size:+.0%}, {_dependence(correlation, offset)}"
                group = f"steps after {SETTLED} nights flagged within {within}"
                sure = size == 0.2 and not correlation and within == 10 and offset == OFFSETS[0]
                of = (group, name, count, series)
                found.append(at_least(*of, 0.95) if sure else shown(*of))
    return sorted(found, key=lambda figure: figure.group)


def _dependent() -> Iterator[tuple[float, float]]:
    """Yields correlations and standard deviations of offsets."""
    yield from itertools.product(CORRELATIONS, OFFSETS)


def _offset_nights(
    rng: np.random.Generator, series: int, nights: int, correlation: float, offset: float
) -> Floats:
    """Returns log ratios, (series, nights), with offsets that depend on those of the night before.

    The first night's is as any other.
    """
    offsets = offset * autoregressive(rng, series, nights, correlation)
    return np.asarray(offsets + OWN * rng.standard_normal((series, nights)), dtype=np.float64)


def _dependence(correlation: float, offset: float) -> str:
    return f"offsets of {offset:.0%}, correlation {correlation:g}"


def paired_figures(series: int, seed: int = 0) -> list[Figure]:
    """Returns how many series are flagged on a machine that is slow for days, nothing changing."""
    found = []
    for dwell in DWELLS:
        rng = np.random.default_rng(seed)
        pairs = [nightly(changes.SEASON, dwell, rng) for _ in range(series)]
        name = f"slow or fast for {dwell} runs"
        ratios = sum(bool(_flags(each)) for _, each in pairs)
        raw = sum(bool(_flags(each)) for each, _ in pairs)
        group = "flagged without a change"
        found.append(at_most(f"{group}, ratios", name, ratios, series, changes.SIGNIFICANCE))
        found.append(shown(f"{group}, raw seconds", name, raw, series))
    return found


def rare_figures(series: int, seed: int = 0) -> list[Figure]:
    """Returns how many candidates are named for failures or stalls, each night judged by itself.

    Stalled saves take five times as long, and each night ends where the gate ends it.
    """
    found = []
    for kind, baseline, candidate, nights in RARE:
        rng = np.random.default_rng(seed)
        count = 0
        for _ in range(series):
            every = [_rare_night(kind, (baseline, candidate), rng) for _ in range(nights)]
            count += bool(gate.over_nights(every))
        name = f"{kind} of {baseline:.0%} and {candidate:.0%}"
        if baseline == candidate:
            group = f"worse over {nights} nights without a difference"
            found.append(at_most(group, name, count, series, nights / gate.NIGHTS))
        else:
            found.append(at_least(f"worse over {nights} nights", name, count, series, 0.9))
    return found


def _rare_night(
    kind: str, shares: tuple[float, float], rng: np.random.Generator
) -> gate.NightCount:
    """Returns the count of one night with up to 100 operations per arm, as the gate stops it."""
    labels = gate.random_labels(MOST_BLOCKS, rng)
    times = np.exp(NOISE * rng.standard_normal(labels.shape))
    bad = rng.random(labels.shape) < np.where(labels, shares[1], shares[0])
    times = np.where(bad, np.inf if kind == "failures" else STALLED * times, times)
    look: int | None = FIRST_LOOK
    while look is not None:
        blocks = look // PER_ARM
        judged = gate.judge({"save": times[:blocks]}, labels[:blocks], GateConfig())
        look = judged.decision.next_look
    if kind == "failures":
        return gate.NightCount.of(bad[:blocks, :, None], labels[:blocks])
    counted = gate.stalls_of_night(times[:blocks], labels[:blocks])
    assert counted is not None
    return counted


def history_figures(*, quick: bool) -> list[Figure]:
    """Returns all figures of a history, in some seconds when quick."""
    size = 150 if quick else 3000
    return [
        *stationary_figures(size),
        *delay_figures(size // 3),
        *dependent_figures(2000 if not quick else 10),
        *dependent_delay_figures(400 if not quick else 10),
        *paired_figures(size // 10),
        *rare_figures(200 if not quick else 4),
    ]


def thresholds(series: int, nights: int, seed: int = 11) -> list[tuple[int, list[float]]]:
    """Returns quantiles of the largest statistic over random orders, by the end of each 60 nights.

    Args:
        series: Random orders, in thousands of which the smallest level needs some.
        nights: Length of a season, a multiple of 60.
        seed: Seed of chance.
    """
    rng = np.random.default_rng(seed)
    upper = [1 - level for level in LEVELS]
    parts = [dict(_windows(rng, nights)) for _ in range(-(-series // _PART))]
    return [
        (end, np.quantile(np.concatenate([part[end] for part in parts]), upper).tolist())
        for end in range(changes.SEASON, nights + 1, changes.SEASON)
    ]


def _windows(rng: np.random.Generator, nights: int) -> Iterator[tuple[int, Floats]]:
    """Yields the largest statistic of random orders within each 60 nights of a season."""
    values = rng.random((_PART, nights))
    ranks = np.zeros((_PART, nights), dtype=np.int16)
    largest = np.zeros(_PART)
    for count in range(1, nights + 1):
        now = count - 1
        less = values[:, :now] < values[:, now:count]
        ranks[:, now] = less.sum(axis=1)
        ranks[:, :now] += ~less
        if count >= changes.FEWEST:
            scores = ndtri((np.arange(count) + 0.5) / count)
            spread = np.sqrt((scores**2).mean())
            cuts = np.arange(changes.SMALLEST_PART, count - changes.SMALLEST_PART + 1)
            sums = np.cumsum(scores[ranks[:, :count]], axis=1)[:, cuts - 1]
            statistics = np.abs(sums) / (spread * np.sqrt(cuts * (count - cuts) / count))
            largest = np.maximum(largest, statistics.max(axis=1))
        if count % changes.SEASON == 0:
            yield count, largest
            largest = np.zeros(_PART)


def _flags(values: Floats) -> list[changes.Flag]:
    return changes.flags(values.tolist(), lambda *_: changes.SIGNIFICANCE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulates, prints the table, and returns the exit code."""
    parser = figure_parser("perf.history", __doc__, "a twentieth of the series")
    parser.add_argument("--thresholds", action="store_true", help="compute the constants again")
    options = parser.parse_args(arguments)
    if options.thresholds:
        first = thresholds(2_000_000, changes.SEASON)
        for last, limits in [*first, *thresholds(40_000, 8 * changes.SEASON)[1:]]:
            named = zip(LEVELS, limits, strict=True)
            print(last, ", ".join(f"{level:g}: {limit:.3f}" for level, limit in named))
        return 0
    return end_simulated(history_figures(quick=options.quick), options.json)


if __name__ == "__main__":
    sys.exit(main())
