"""The tour of the guide, from the command to its end: all of it, and what is not an operation."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orbax_bench_core.execute import measuring_lock
from perf.pairing import Figure, Pairs, alternate
from perf.probe import Setting
from perf.process import ROOT, SIMULATED, Finished, ProbeFailed, our_command, run
from perf.upstream import Upstream

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
    """One run of the tour.

    Attributes:
        wall_s: Seconds from the start of the process to its end.
        cpu_s: CPU seconds of all its processes that have ended.
        operations_s: Seconds that its outermost operations took together, warm-ups included.
    """

    wall_s: float
    cpu_s: float
    operations_s: float

    @property
    def outside_s(self) -> float:
        """Seconds that went into anything else."""
        return self.wall_s - self.operations_s


@dataclass(frozen=True, kw_only=True)
class OurTours:
    """The tour three times.

    Attributes:
        without: Without limits of machine and storage.
        known: As a user runs it who has run something like it in the last week.
        first: As a user runs it for the first time.
    """

    without: Tour
    known: Tour
    first: Tour


def figures(setting: Setting) -> list[Figure]:
    """Runs the tours of both sides in turn."""
    upstream = setting.upstream

    def say(line: str) -> None:
        setting.say(f"tour: {line}")

    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "limits"
        suite = Path(folder) / "upstream.yaml"
        suite.write_text(_for_upstream(SUITE.read_text()))
        pairs = alternate(
            setting.rounds,
            lambda: OurTours(
                first=_ours(say, kept, "--new-limits"),
                without=_ours(say, kept, "--no-limits"),
                known=_ours(say, kept),
            ),
            None if upstream is None else lambda: _theirs(say, upstream, suite),
            say=say,
        )
    return [
        *_figures("tour", pairs, lambda tours: tours.without, WALL_TARGET),
        *_figures("tour, limits known", pairs, lambda tours: tours.known, USER_TARGET),
        *_figures("tour, limits measured", pairs, lambda tours: tours.first, USER_TARGET)[:2],
    ]


def _figures(
    name: str, pairs: Pairs[OurTours, Tour], which: Callable[[OurTours], Tour], target: float
) -> list[Figure]:
    kinds: list[tuple[str, Callable[[Tour], float], float]] = [
        ("wall time", lambda tour: tour.wall_s, target),
        ("CPU", lambda tour: tour.cpu_s, target),
        ("outside its operations", lambda tour: tour.outside_s, OUTSIDE_TARGET),
    ]
    return [
        Figure(
            name=f"{name}: {kind}",
            unit="s",
            ours=tuple(value(which(tours)) for tours in pairs.ours),
            upstream=None if pairs.upstream is None else tuple(map(value, pairs.upstream)),
            target=limit,
            limits="ratio",
        )
        for kind, value, limit in kinds
    ]


def _ours(say: Callable[[str], None], kept: Path, *flags: str) -> Tour:
    # We hold the lock that the command would take, so that it waits for nobody on the clock.
    return _tour(
        lambda folder: run(
            our_command("run", str(SUITE), "--output-directory", str(folder), "--no-lock", *flags),
            environment={
                "JAX_PLATFORMS": SIMULATED["JAX_PLATFORMS"],
                "ORBAX_BENCH_LIMITS": str(kept),
            },
        ),
        our_operations_s,
        say,
    )


def _theirs(say: Callable[[str], None], side: Upstream, suite: Path) -> Tour:
    return _tour(
        lambda folder: run(
            [side.python, side.runner, f"--config_file={suite}", f"--output_directory={folder}"],
            environment=SIMULATED,
        ),
        upstream_operations_s,
        say,
    )


def _for_upstream(text: str) -> str:
    """Returns the suite with the benchmark's name as upstream has it.

    Raises:
        ProbeFailed: The suite names another benchmark.
    """
    if text.count(_OURS) != 1:
        raise ProbeFailed(f"{SUITE} has no single {_OURS!r}")
    return text.replace(_OURS, _UPSTREAMS)


def our_operations_s(directory: Path) -> float:
    """Adds up the outermost operations of a run of ours, from its records, warm-ups included.

    Raises:
        ProbeFailed: It holds no such sample.
    """
    records = (json.loads(path.read_text()) for path in directory.glob("records/*/*/host_*.json"))
    return _total(
        (
            sample["value"]
            for record in records
            for sample in record["samples"]
            if sample["operation"] in OPERATIONS and sample["metric"] == _TIME
        ),
        directory,
    )


def upstream_operations_s(directory: Path) -> float:
    """Adds up the outermost operations of an upstream run, from the means that it leaves as JSON.

    The output directory must still have its folder of each repeat.

    Raises:
        ProbeFailed: It holds no such mean.
    """
    totals = []
    for path in directory.glob("tensorboard/*/host_0/_per_host_means.json"):
        found = json.loads(path.read_text())
        means = dict(zip(found["keys"], found["means"], strict=True))
        benchmark = path.parents[1].name
        repeats = len(list((directory / benchmark).glob("repeat_*")))
        totals += [repeats * means[f"{name}::{_TIME}"] for name in OPERATIONS]
    return _total(totals, directory)


def _tour(
    command: Callable[[Path], Finished],
    operations_s: Callable[[Path], float],
    say: Callable[[str], None],
) -> Tour:
    with tempfile.TemporaryDirectory() as folder, measuring_lock(say):
        os.sync()  # what an earlier run has left to write is not this one's to wait for
        finished = command(Path(folder))
        return Tour(
            wall_s=finished.seconds,
            cpu_s=finished.cpu_seconds,
            operations_s=operations_s(Path(folder)),
        )


def _total(seconds: Iterable[float], directory: Path) -> float:
    total = sum(seconds)
    if not total:
        raise ProbeFailed(f"{directory} says nothing of the time of {' or '.join(OPERATIONS)}")
    return total
