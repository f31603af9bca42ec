"""Known answers of a soak: false alarms in simulated series, and one real soak.

`python -m perf.soak --simulate ar1|step|warm_up|leak [--series N]` or `--real MIB [--trial N]`

Exit code 0 when at most 1 % of the series without a leak, and at least 99 % of those with one, end
in LEAK; or when the real soak ends in LEAK with a planted leak and in PASS without one.
"""

import argparse
import collections
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from orbax_bench_core.analysis.soak import DROPPED, FEWEST, LIMIT_MIB, slope_of, word_of
from perf.process import cli

Levels = np.ndarray[Any, np.dtype[np.float64]]

SUITE: Final = Path(__file__).with_name("leaking.yaml")
_NOISE_MIB: Final = 2.0
_CORRELATION: Final = 0.9
_STEP_MIB: Final = 6.0
_HEAP_MIB: Final = 30.0
_FILLS: Final = 60.0
_LEAK_MIB: Final = 0.5
_ALARMS: Final = 0.01


def noise(random: np.random.Generator, saves: int, spread: float) -> Levels:
    """Returns a first-order autoregressive series with coefficient 0.9, in MiB."""
    steps = spread * np.sqrt(1 - _CORRELATION**2) * random.normal(size=saves)
    levels = np.empty(saves)
    levels[0] = spread * random.normal()
    for save in range(1, saves):
        levels[save] = _CORRELATION * levels[save - 1] + steps[save]
    return levels


SERIES: Final[dict[str, Callable[[np.random.Generator, Levels], Levels]]] = {
    "ar1": lambda random, saves: noise(random, saves.size, _NOISE_MIB),
    "step": lambda random, saves: (
        noise(random, saves.size, 0.3) + _STEP_MIB * (saves >= random.integers(1, saves.size))
    ),
    "warm_up": lambda random, saves: (
        noise(random, saves.size, 0.3) + _HEAP_MIB * (1 - np.exp(-saves / _FILLS))
    ),
    "leak": lambda random, saves: noise(random, saves.size, _NOISE_MIB) + _LEAK_MIB * saves,
}
"""Resident set by save: noise of 2 MiB; one step of 6 MiB anywhere; a heap of 30 MiB that fills
with a time constant of 60 saves; and a leak of 0.5 MiB a save in the noise of the first."""


def words_of(kind: str, series: int) -> collections.Counter[str]:
    """Returns how often each verdict comes of simulated soaks of 200 saves."""
    found: collections.Counter[str] = collections.Counter()
    for seed in range(series):
        levels = SERIES[kind](np.random.default_rng(seed), np.arange(FEWEST))[DROPPED:].tolist()
        whole, half = slope_of(levels), slope_of(levels[len(levels) // 2 :])
        found[word_of(whole, half, LIMIT_MIB)] += 1
    return found


def simulate(kind: str, series: int) -> int:
    """Prints the verdicts on simulated soaks, and returns the exit code."""
    words = words_of(kind, series)
    said = ", ".join(f"{words[word]} {word}" for word in ("LEAK", "PASS", "INCONCLUSIVE"))
    print(f"{kind}: {said} of {series}")
    wrong = series - words["LEAK"] if kind == "leak" else words["LEAK"]
    return int(wrong > _ALARMS * series)


def real(leak_mib: float, trial: int) -> int:
    """Soaks real saves with a planted leak, or with none, and returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="orbax-bench-perf-") as folder:
        flags = ("--saves", FEWEST, "-o", f"{folder}/run", "--json", "--no-lock")
        leak = f"benchmarks.0.options.leak_mib={leak_mib}"
        done = cli("soak", SUITE, *flags, "--override", leak)
        try:
            (series,) = json.loads(done.stdout)["series"]
        except ValueError:
            print(done.stderr[-500:])
            return 1
    grown = next(each["whole"] for each in series["growths"] if each["level"] == "rss")
    slope = f"{grown['per_save']:.3f} [{grown['low']:.3f}, {grown['high']:.3f}] MiB per save"
    print(f"trial {trial}, {leak_mib:g} MiB planted: {series['word']}, {slope}")
    return int(series["word"] != ("LEAK" if leak_mib > LIMIT_MIB else "PASS"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulates soaks or makes one, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.soak", description=__doc__)
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--simulate", choices=sorted(SERIES))
    kind.add_argument("--real", type=float, metavar="MIB", help="planted leak per save; 0 for none")
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--trial", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.simulate is not None:
        return simulate(options.simulate, options.series)
    return real(options.real, options.trial)


if __name__ == "__main__":
    sys.exit(main())
