"""Measurement of process noise within a given time, with its progress on a terminal."""

from __future__ import annotations

import time
from typing import Any, Final

import yaml

from orbax_bench_core.cli.arm_flags import with_equal_arms
from orbax_bench_core.cli.measurement import STOPS, Measurement, Measuring, stopped
from orbax_bench_core.config import LoadedSuite, parse_suite
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps import Comparison, publish_verdicts

_BLOCKS: Final = 4
"""Blocks of one run: short runs, so that the time is kept, and each is an A/A test."""

_SLOTS_PER_ARM: Final = 2

_OPERATIONS: Final = 10
"""Operations per arm of a run in one worker."""


def make_runs(suite: LoadedSuite, directory: str, minutes: float, how: Measuring) -> int:
    """Makes runs of a suite against itself, and of its own arms, while there is time.

    In the first every slot of a block is a worker of its own, which shows by how much workers
    differ. The others are made where both arms share one worker: a few runs of the same pair, each
    in a new worker, show by how much the ratio of two options differs from worker to worker. Both
    are made in turns until the next would take too long; the first of each kind always is.

    Args:
        suite: The suite.
        directory: Holds a run directory for each run.
        minutes: Time that may be taken.
        how: How to measure.

    Returns:
        The exit code, which is 0 unless it was stopped.
    """
    tell, root, suites = how.reporter.tell, RunDirectory(directory).root, _suites(suite)
    began, took, number = time.monotonic(), dict.fromkeys(suites, 0.0), 0
    while True:
        for kind, one in suites.items():
            spent = (time.monotonic() - began) / 60
            if number and spent + took[kind] > minutes:
                tell(f"{number} run(s) of each kind in {spent:.1f} minutes")
                return 0
            tell(f"\n{kind} {number}, after {spent:.1f} of {minutes:g} minutes")
            try:
                compare(one, str(root / f"{kind}_{number:03}"), how)
            except STOPS as stop:
                why, code = stopped(stop)
                how.reporter.say(f"{why}; what is done is kept.")
                return code
            took[kind] = (time.monotonic() - began) / 60 - spent
        number += 1


def compare(suite: LoadedSuite, directory: str, how: Measuring) -> None:
    """Makes one run, and writes its verdicts."""
    comparison = Comparison()
    run = Measurement(comparison, suite, directory, how)
    run.measure()
    assert comparison.verdicts is not None
    publish_verdicts(run.session.directory, comparison.verdicts)


def _suites(loaded: LoadedSuite) -> dict[str, LoadedSuite]:
    operations = _BLOCKS * _SLOTS_PER_ARM * loaded.suite.gate.operations_per_life
    rules: dict[str, Any] = {"tolerance": 0.0, "looks": [operations]}
    found = {"aa": with_equal_arms(loaded, {**rules, "lives": "always"})}
    if _shares_one_worker(loaded):
        data = dict(loaded.source.data)
        data["gate"] = {**data.get("gate", {}), "looks": [_OPERATIONS]}
        text = yaml.safe_dump(data, sort_keys=False)
        found["options"] = parse_suite(text, loaded.source.file)
    return found


def _shares_one_worker(loaded: LoadedSuite) -> bool:
    """Returns whether a suite has arms, and they differ in nothing that needs another worker."""
    arms = loaded.suite.arms
    if arms is None:
        return False
    sides = (arms.baseline, arms.candidate)
    needs = [(arm.environment, arm.processes, arm.mesh_config) for arm in sides]
    return needs[0] == needs[1]
