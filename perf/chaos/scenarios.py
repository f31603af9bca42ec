"""Scenarios: commands that are disturbed, and what they must have left in the end."""

from __future__ import annotations

import dataclasses
from typing import Final

_SWEEP: Final = """
suite_name: chaos
num_repeats: 4
execution: {retries: 0, warmups: 1}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks:
  - {generator: tests.support.scripted.Scripted, options: {lasts_s: 0.04, save_s: [0.1, 0.2]}}
"""
_PAIR: Final = """
suite_name: chaos
execution: {retries: 0, warmups: 1}
gate: {seed: 1}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: tests.support.scripted.Scripted, options: {lasts_s: 0.02}}]
"""
_ARMS: Final = """
arms: {baseline: {options: {save_s: 0.1}}, candidate: {options: {save_s: 0.13}}}
"""
_RELEASES: Final = """
suite_name: chaos
execution: {retries: 0, warmups: 0}
gate: {seed: 1, operations_per_life: 8}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: tests.support.scripted.Scripted, options: {save_s: 0.1}}]
"""
_TOGETHER: Final = """
suite_name: chaos
num_repeats: 4
execution: {retries: 0, warmups: 0, timeout_s: 60}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: tests.support.scripted.Scripted, options: {lasts_s: 0.1}}]
"""
_REAL: Final = """
suite_name: chaos
num_repeats: 3
execution: {retries: 0, warmups: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [64, 64]}}}
benchmarks: [{generator: save_restore, options: {use_ocdbt: [true, false]}}]
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scenario:
    """A command and its suite.

    Attributes:
        name: Name.
        suite: Text of the suite, `suite.yaml` in the folder of a trial.
        words: The command and its flags; results go below `place`.
        code: Exit code when nothing disturbs it.
        before: Scenario whose results it reads; they lie in `place` when it begins.
        hosts: On how many processes it runs at once, as hosts of one cluster.
        wheels: Releases of a package of which there are wheels, by name only.
        real: Whether its workers are real, with seconds that nobody knows in advance.
        share: Out of 1,000 kills, how many are its own.
    """

    name: str
    suite: str
    words: tuple[str, ...]
    code: int = 0
    before: str = ""
    hosts: int = 1
    wheels: tuple[str, ...] = ()
    real: bool = False
    share: int = 0


SCENARIOS: Final = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            name="run",
            suite=_SWEEP,
            words=("run", "suite.yaml", "-o", "place/out", "--no-limits"),
            share=260,
        ),
        Scenario(
            name="ab",
            suite=_PAIR + _ARMS,
            words=("ab", "suite.yaml", "-o", "place/out"),
            code=3,
            share=100,
        ),
        Scenario(
            name="report",
            suite=_SWEEP,
            words=("report", "place/out"),
            before="run",
            share=270,
        ),
        Scenario(
            name="capture",
            suite=_SWEEP,
            words=(
                "baseline",
                "capture",
                "place/registry",
                "place/out",
                "--promote",
                "--label",
                "chaos",
            ),
            before="run",
            share=300,
        ),
        Scenario(
            name="hosts",
            suite=_TOGETHER,
            words=("run", "suite.yaml", "-o", "place/out", "--no-limits", "--host-wait", "3"),
            hosts=2,
            share=40,
        ),
        Scenario(
            name="bisect",
            suite=_RELEASES,
            words=(
                *("bisect", "suite.yaml", "-o", "place/out", "--package", "planted"),
                *("--good", "1.0", "--bad", "1.2", "--wheels", "wheels", "--only-wheels"),
            ),
            code=3,
            wheels=("1.0", "1.1", "1.2"),
            share=20,
        ),
        Scenario(
            name="pipeline",
            suite=_SWEEP,
            words=(
                *("pipeline", "run", "suite.yaml", "-o", "place/out"),
                *("--set", "measure_limits=false"),
            ),
            share=30,
        ),
        Scenario(
            name="real",
            suite=_REAL,
            words=("run", "suite.yaml", "-o", "place/out", "--no-limits"),
            real=True,
            share=20,
        ),
    )
}
"""Commands that are disturbed, by name."""

SLOW_RELEASES: Final = ("1.1", "1.2")
"""Releases in which a save takes 1.3 times as long."""
