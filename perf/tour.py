"""The tour of the guide, from the command to its end: all of it, and what is not an operation."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orbax_bench_core.execute import measuring_lock
from perf.pairing import Figure, Pairs
from perf.probe import Setting, Upstream, say
from perf.process import ROOT, SIMULATED, Finished, ProbeFailed, our_command, run

SUITE: Final = ROOT / "examples" / "tour.yaml"

WALL_TARGET: Final = 0.22
USER_TARGET: Final = 0.3
OUTSIDE_TARGET: Final = 0.2

OPERATIONS: Final = ("save", "load")
"""The outermost operations of both sides; what our `save` encloses is already in it."""

_OURS: Final = "generator: save_restore"
_UPSTREAMS: Final = "generator: orbax.checkpoint._src.testing.benchmarks.v1.benchmark.Benchmark"

_TIME: Final = "0_basics/time_s"


@dataclass(frozen=True, kw_only=True)
class Tour:
    """One run of the tour."""

    wall_s: float  # seconds from the start of the process to its end
    cpu_s: float  # CPU seconds of all its processes that have ended
    operations_s: float  # seconds that its outermost operations took together, warm-ups included


def figures(setting: Setting) -> list[Figure]:
    """Runs the tours of both sides in turn."""
    upstream = setting.upstream
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "limits"
        suite = Path(folder) / "upstream.yaml"
        suite.write_text(SUITE.read_text().replace(_OURS, _UPSTREAMS))
        pairs = setting.pairs(
            "tour",
            lambda: (_ours(kept, "--new-limits"), _ours(kept, "--no-limits"), _ours(kept)),
            None if upstream is None else lambda: _theirs(upstream, suite),
        )
    measured, without, known = (
        Pairs(ours=ours, upstream=pairs.upstream) for ours in zip(*pairs.ours, strict=True)
    )
    return [
        *_figures("tour", without, WALL_TARGET),
        *_figures("tour, limits known", known, USER_TARGET),
        *_figures("tour, limits measured", measured, USER_TARGET)[:2],
    ]


def _figures(name: str, pairs: Pairs, target: float) -> list[Figure]:
    outside = f"{name}: outside its operations"
    return [
        pairs.figure(f"{name}: wall time", "s", lambda tour: tour.wall_s, target),
        pairs.figure(f"{name}: CPU", "s", lambda tour: tour.cpu_s, target),
        pairs.figure(outside, "s", lambda tour: tour.wall_s - tour.operations_s, OUTSIDE_TARGET),
    ]


def _ours(kept: Path, *flags: str) -> Tour:
    # We hold the lock that the command would take, so that it waits for nobody on the clock.
    command = our_command("run", str(SUITE), "--no-lock", *flags, "--output-directory")
    environment = {"JAX_PLATFORMS": SIMULATED["JAX_PLATFORMS"], "ORBAX_BENCH_LIMITS": str(kept)}
    with _folder() as folder:
        return _tour(run([*command, str(folder)], environment=environment), our_seconds(folder))


def _theirs(side: Upstream, suite: Path) -> Tour:
    command = [side.python, side.runner, f"--config_file={suite}", "--output_directory"]
    with _folder() as folder:
        return _tour(run([*command, str(folder)], environment=SIMULATED), their_seconds(folder))


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder, measuring_lock(say):
        os.sync()  # what an earlier run has left to write is not this one's to wait for
        yield Path(folder)


def _tour(finished: Finished, operations: Sequence[float]) -> Tour:
    if not sum(operations):
        raise ProbeFailed(f"no run says anything of the time of {' or '.join(OPERATIONS)}")
    return Tour(wall_s=finished.seconds, cpu_s=finished.cpu_seconds, operations_s=sum(operations))


def our_seconds(directory: Path) -> list[float]:
    """Returns the seconds of the outermost operations of a run of ours, warm-ups included."""
    return [
        sample["value"]
        for path in directory.glob("records/*/*/host_*.json")
        for sample in json.loads(path.read_text())["samples"]
        if sample["operation"] in OPERATIONS and sample["metric"] == _TIME
    ]


def their_seconds(directory: Path) -> list[float]:
    """Returns those of an upstream run, from the means that it leaves as JSON.

    The output directory must still have its folder of each repeat.
    """
    totals = []
    for path in directory.glob("tensorboard/*/host_0/_per_host_means.json"):
        found = json.loads(path.read_text())
        means = dict(zip(found["keys"], found["means"], strict=True))
        repeats = len(list((directory / path.parents[1].name).glob("repeat_*")))
        totals += [repeats * means[f"{name}::{_TIME}"] for name in OPERATIONS]
    return totals
