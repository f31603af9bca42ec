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
from perf.pairing import Figure, alternate
from perf.probe import Setting
from perf.process import ROOT, SIMULATED, Finished, ProbeFailed, our_command, run
from perf.upstream import Upstream

SUITE: Final = ROOT / "examples" / "tour.yaml"

WALL_TARGET: Final = 0.35
OUTSIDE_TARGET: Final = 0.2

OPERATIONS: Final = ("save", "load")
"""The outermost operations of both sides; what our `save` encloses is already in it."""

_TIME: Final = "0_basics/time_s"


@dataclass(frozen=True, kw_only=True)
class Tour:
    """One run of the tour.

    Attributes:
        wall_s: Seconds from the start of the process to its end.
        operations_s: Seconds that its outermost operations took together, warm-ups included.
    """

    wall_s: float
    operations_s: float

    @property
    def outside_s(self) -> float:
        """Seconds that went into anything else."""
        return self.wall_s - self.operations_s


def figures(setting: Setting) -> list[Figure]:
    """Runs the tour of both sides in turn."""
    upstream = setting.upstream

    def say(line: str) -> None:
        setting.say(f"tour: {line}")

    def ours() -> Tour:
        # We hold the lock that the command would take, so that it waits for nobody on the clock.
        return _tour(
            lambda folder: run(
                our_command(
                    *("run", str(SUITE), "--output-directory", str(folder)),
                    *("--no-lock", "--no-limits"),
                ),
                environment={"JAX_PLATFORMS": SIMULATED["JAX_PLATFORMS"]},
            ),
            our_operations_s,
            say,
        )

    def theirs(side: Upstream) -> Tour:
        return _tour(
            lambda folder: run(
                [
                    *(side.python, side.runner),
                    f"--config_file={SUITE}",
                    f"--output_directory={folder}",
                ],
                environment=SIMULATED,
            ),
            upstream_operations_s,
            say,
        )

    other = None if upstream is None else lambda: theirs(upstream)
    pairs = alternate(setting.rounds, ours, other, say=say)
    wall, their_wall = pairs.values(lambda tour: tour.wall_s)
    outside, their_outside = pairs.values(lambda tour: tour.outside_s)
    return [
        Figure(
            name="tour: wall time",
            unit="s",
            ours=wall,
            upstream=their_wall,
            target=WALL_TARGET,
            limits="ratio",
        ),
        Figure(
            name="tour: outside its operations",
            unit="s",
            ours=outside,
            upstream=their_outside,
            target=OUTSIDE_TARGET,
            limits="ratio",
        ),
    ]


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
        return Tour(wall_s=finished.seconds, operations_s=operations_s(Path(folder)))


def _total(seconds: Iterable[float], directory: Path) -> float:
    total = sum(seconds)
    if not total:
        raise ProbeFailed(f"{directory} says nothing of the time of {' or '.join(OPERATIONS)}")
    return total
