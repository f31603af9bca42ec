"""Rules of other tools, as foils: is this candidate reported as slower than this baseline?

Each takes both arms, shape (series, operations), and says for every series whether it would report
a regression. They are what a tool does by default when its baseline runs first and its candidate
after it.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import stats

from perf.gate.noise import Floats

Found = npt.NDArray[np.bool_]
Rule = Callable[[Floats, Floats, np.random.Generator], Found]

_RESAMPLES: Final = 1000
_AT_ONCE: Final = 100


def mean_ratio(baseline: Floats, candidate: Floats, _rng: np.random.Generator) -> Found:
    """The mean is more than 5 % higher (conbench's default threshold)."""
    return np.asarray(candidate.mean(axis=1) > 1.05 * baseline.mean(axis=1))


def t_test(baseline: Floats, candidate: Floats, _rng: np.random.Generator) -> Found:
    """Student's two-sample test, two-sided at .05, and the mean is higher (pyperf)."""
    found = stats.ttest_ind(candidate, baseline, axis=1)
    return np.asarray((found.pvalue < 0.05) & (found.statistic > 0))


def mann_whitney(baseline: Floats, candidate: Floats, _rng: np.random.Generator) -> Found:
    """Mann-Whitney U, two-sided at .05, and slower (google/benchmark, benchstat)."""
    found = stats.mannwhitneyu(candidate, baseline, axis=1)
    return np.asarray((found.pvalue < 0.05) & _ranked_slower(found.statistic, baseline))


def mann_whitney_and_factor(
    baseline: Floats, candidate: Floats, _rng: np.random.Generator
) -> Found:
    """Mann-Whitney U, two-sided at .002, and the median is more than 1.1 times as high (asv)."""
    found = stats.mannwhitneyu(candidate, baseline, axis=1)
    slower = np.median(candidate, axis=1) > 1.1 * np.median(baseline, axis=1)
    return np.asarray((found.pvalue < 0.002) & slower)


def bootstrap_median(baseline: Floats, candidate: Floats, rng: np.random.Generator) -> Found:
    """The 95 % percentile bootstrap interval of the ratio of medians lies above +1 %."""
    return _lower_end(baseline, candidate, rng, np.median) > 1.01


def criterion_like(baseline: Floats, candidate: Floats, rng: np.random.Generator) -> Found:
    """Criterion's two steps: a bootstrapped t-test at .05, and the mean's interval above +1 %.

    The t-test draws both arms from the pooled values; the interval is the 95 % percentile bootstrap
    of the ratio of means, each arm drawn from itself. 1,000 resamples instead of 100,000.
    """
    observed = _t(candidate, baseline)
    pooled = np.concatenate([baseline, candidate], axis=1)
    size = baseline.shape[1]
    extreme = np.zeros(len(baseline))
    for part in _parts(len(baseline)):
        drawn = _resample(pooled[part], rng)
        t = _t(drawn[..., size:], drawn[..., :size])
        upper = (t >= observed[part, None]).mean(axis=1)
        extreme[part] = 2 * np.minimum(upper, 1 - upper)
    return (extreme < 0.05) & (_lower_end(baseline, candidate, rng, np.mean) > 1.01)


RIVALS: Final[Mapping[str, Rule]] = {
    "mean ratio > 5 %": mean_ratio,
    "t-test .05": t_test,
    "Mann-Whitney .05": mann_whitney,
    "Mann-Whitney .002 and 1.1x (asv)": mann_whitney_and_factor,
    "bootstrap CI of medians > +1 %": bootstrap_median,
    "criterion-like": criterion_like,
}


def _ranked_slower(statistic: Floats, baseline: Floats) -> Found:
    return np.asarray(statistic > baseline.shape[1] ** 2 / 2)


def _t(first: Floats, second: Floats) -> Floats:
    """Returns Welch's t along the last axis."""
    size = first.shape[-1]
    error = np.sqrt((first.var(axis=-1, ddof=1) + second.var(axis=-1, ddof=1)) / size)
    return np.asarray((first.mean(axis=-1) - second.mean(axis=-1)) / error)


def _lower_end(
    baseline: Floats, candidate: Floats, rng: np.random.Generator, centre: Callable[..., Floats]
) -> Floats:
    ends = np.empty(len(baseline))
    for part in _parts(len(baseline)):
        before = centre(_resample(baseline[part], rng), axis=-1)
        now = centre(_resample(candidate[part], rng), axis=-1)
        ends[part] = np.percentile(now / before, 2.5, axis=1)
    return ends


def _resample(values: Floats, rng: np.random.Generator) -> Floats:
    """Returns each row drawn again with replacement, shape (rows, resamples, values)."""
    rows, size = values.shape
    chosen = rng.integers(size, size=(rows, _RESAMPLES, size))
    return np.asarray(np.take_along_axis(values[:, None, :], chosen, axis=2), dtype=np.float64)


def _parts(rows: int) -> list[slice]:
    """Returns slices of few enough rows that their resamples fit into memory."""
    return [slice(start, start + _AT_ONCE) for start in range(0, rows, _AT_ONCE)]
