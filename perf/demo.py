"""Verdicts of the demo and of the CI example: by replay of recorded times, or by real runs.

`python -m perf.demo [--replays N] [--real]`

Without `--real` the times that both suites took on a busy machine, compared with themselves, are
replayed with a fixed seed: a stretch that begins anywhere, arms in random order, judged by the
rules of the suite. Exit codes: 0 at least 95 of 100 end in PASS, 1 fewer do. With `--real` the demo
runs once, as `make demo` does: 0 it ends in PASS.
"""

import argparse
import csv
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from orbax_bench_core.config import PER_ARM, GateConfig, load_suite
from orbax_bench_core.gate import judge, random_labels
from perf.gate.noise import Floats
from perf.process import ROOT, cli

SUITES: Final[Mapping[str, Path]] = {
    "demo": ROOT / "examples" / "demo.yaml",
    "ci": ROOT / "examples" / "ci" / "suite.yaml",
}
TARGET: Final = 0.95
REPLAYS: Final = 100

_DATA: Final = Path(__file__).parent / "gate" / "data" / "demo.csv"
_OPERATIONS: Final = ("save_blocking", "save", "load")


def recorded(suite: str) -> list[dict[str, Floats]]:
    """Returns the seconds of each operation in every recorded run of a suite, as measured."""
    runs: dict[str, list[list[float]]] = {}
    with _DATA.open(newline="") as lines:
        for row in csv.DictReader(lines):
            if row["suite"] == suite:
                seconds = [float(row[f"{operation}_s"]) for operation in _OPERATIONS]
                runs.setdefault(row["run"], []).append(seconds)
    return [dict(zip(_OPERATIONS, np.array(rows).T, strict=True)) for rows in runs.values()]


def replay(suite: str, replays: int = REPLAYS, seed: int = 0) -> Counter[str]:
    """Judges stretches of the recorded times of a suite as its comparison with itself.

    Returns:
        How often each word came out, such as `PASS` or `INCONCLUSIVE (stalls)`.
    """
    gate = load_suite(SUITES[suite]).suite.gate
    runs, rng = recorded(suite), np.random.default_rng(seed)
    return Counter(_judged(runs[rng.integers(len(runs))], gate, rng) for _ in range(replays))


def _judged(run: Mapping[str, Floats], gate: GateConfig, rng: np.random.Generator) -> str:
    """Judges a stretch look by look, as a comparison does that stops at its verdict."""
    labels = random_labels(gate.looks_at_all()[-1] // PER_ARM, rng)
    start = rng.integers(len(next(iter(run.values()))) - labels.size + 1)
    times = {
        operation: seconds[start : start + labels.size].reshape(labels.shape)
        for operation, seconds in run.items()
    }
    look: int | None = gate.looks[0]
    while look is not None:
        blocks = look // PER_ARM
        so_far = {operation: seconds[:blocks] for operation, seconds in times.items()}
        found = judge(so_far, labels[:blocks], gate).decision
        look = found.next_look
    return found.word if found.word == "PASS" else f"{found.word} ({found.endpoint})"


def real() -> str:
    """Runs the demo once, as `make demo` does; returns what was wrong, empty when it passed."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="orbax-bench-perf-") as folder:
        words = ("--pipeline", "regression", "--output-directory", Path(folder, "demo"))
        done = cli("pipeline", "run", SUITES["demo"], *words)
    took = time.monotonic() - began
    print(f"exit code {done.returncode} after {took:.0f} s")
    said = [line for line in done.stdout.splitlines() if line[:1] in "✗?✓"]
    if done.returncode or not said or not said[-1].startswith("✓ PASS"):
        print(done.stdout, done.stderr)
        return said[-1] if said else "there is no verdict"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Replays or runs, prints what came out, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.demo", description=__doc__)
    parser.add_argument("--replays", type=int, default=REPLAYS, help="of each suite")
    parser.add_argument("--real", action="store_true", help="run the demo once instead")
    options = parser.parse_args(arguments)
    if options.real:
        wrong = real()
        print(wrong or "PASS")
        return 1 if wrong else 0
    missed = 0
    for suite in SUITES:
        words = replay(suite, options.replays)
        missed += words["PASS"] < TARGET * options.replays
        said = ", ".join(f"{word} {count}" for word, count in words.most_common())
        print(f"{suite}: of {options.replays} replays {said}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
