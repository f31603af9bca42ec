"""Measurement of process noise within a given time, with its progress on a terminal."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Final

import yaml

from orbax_bench_core.cli.arm_flags import with_equal_arms
from orbax_bench_core.cli.comparison_run import ComparisonRun
from orbax_bench_core.cli.measurement import Interrupted
from orbax_bench_core.cli.output import Output
from orbax_bench_core.config import LoadedSuite, parse_suite
from orbax_bench_core.execute import RunSettings
from orbax_bench_core.records import RunDirectory

_BLOCKS: Final = 4
"""Blocks of one run: short runs, so that the time is kept, and each is an A/A test."""

_SLOTS_PER_ARM: Final = 2

_OPERATIONS: Final = 10
"""Operations per arm of a run in one worker."""


class CalibrationRun:
    """Runs of a suite against itself, and of its own arms, that are about to be made.

    In the first every slot of a block is a worker of its own, which shows by how much workers
    differ. The others are made where both arms share one worker: a few runs of the same pair, each
    in a new worker, show by how much the ratio of two options differs from worker to worker.
    """

    def __init__(
        self,
        loaded: LoadedSuite,
        output_directory: str,
        *,
        minutes: float,
        settings: RunSettings,
        lock: bool,
        output: Output,
    ) -> None:
        """Prepares; nothing is measured yet.

        Args:
            loaded: The suite.
            output_directory: Holds a run directory for each run.
            minutes: Time that may be taken; the first run of each kind is made whatever it takes.
            settings: How to measure; checkpoints are deleted whatever it says.
            lock: Whether to wait until nothing else of ours measures on this machine.
            output: Where to show progress.

        Raises:
            UserError: The directory cannot be honoured.
        """
        self._loaded = loaded
        self._root = RunDirectory(output_directory).root
        self._minutes = minutes
        self._settings = dataclasses.replace(settings, remove_repeated_dir=True)
        self._lock = lock
        self._output = output

    def run(self) -> int:
        """Makes runs of each kind in turns until the next would take too long.

        Returns:
            The exit code, which is 0 unless it was stopped.
        """
        try:
            self._make_runs()
        except Interrupted as stop:
            self._output.say(f"{stop}; what is done is kept.")
            return stop.code
        return 0

    def _make_runs(self) -> None:
        suites = self._suites()
        began, took, number = time.monotonic(), dict.fromkeys(suites, 0.0), 0
        while True:
            for kind, suite in suites.items():
                spent = (time.monotonic() - began) / 60
                if number and spent + took[kind] > self._minutes:
                    self._say(f"{number} run(s) of each kind in {spent:.1f} minutes")
                    return
                self._say(f"\n{kind} {number}, after {spent:.1f} of {self._minutes:g} minutes")
                took[kind] = self._measure(suite, f"{kind}_{number:03}")
            number += 1

    def _suites(self) -> dict[str, LoadedSuite]:
        gate = self._loaded.suite.gate
        operations = _BLOCKS * _SLOTS_PER_ARM * gate.operations_per_life
        rules: dict[str, Any] = {"tolerance": 0.0, "looks": [operations]}
        found = {"aa": with_equal_arms(self._loaded, {**rules, "lives": "always"})}
        if self._one_worker:
            data = dict(self._loaded.source.data)
            data["gate"] = {**data.get("gate", {}), "looks": [_OPERATIONS]}
            text = yaml.safe_dump(data, sort_keys=False)
            found["options"] = parse_suite(text, self._loaded.source.file)
        return found

    @property
    def _one_worker(self) -> bool:
        """Whether the suite has arms, and they differ in nothing that needs another worker."""
        arms = self._loaded.suite.arms
        if arms is None:
            return False
        sides = (arms.baseline, arms.candidate)
        needs = [(arm.environment, arm.processes, arm.mesh_config) for arm in sides]
        return needs[0] == needs[1]

    def _measure(self, suite: LoadedSuite, folder: str) -> float:
        """Makes one run, and returns the minutes that it took."""
        measurement = ComparisonRun(
            suite,
            str(self._root / folder),
            settings=self._settings,
            output=self._output,
            lock=self._lock,
        )
        began = time.monotonic()
        measurement.publish_verdicts(measurement.verdicts())
        return (time.monotonic() - began) / 60

    def _say(self, line: str) -> None:
        self._output.progress.print(line, markup=False, highlight=False, soft_wrap=True)
