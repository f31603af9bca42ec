"""Scenarios: commands that are disturbed, and what they must have left in the end."""

import dataclasses
from typing import Final

_SCRIPTED: Final = """
suite_name: chaos
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
"""
_SWEEP: Final = f"""{_SCRIPTED}
num_repeats: 4
execution: {{retries: 0, warmups: 1}}
benchmarks:
  - {{generator: tests.support.scripted.Scripted, options: {{lasts_s: 0.04, save_s: [0.1, 0.2]}}}}
"""
_PAIR: Final = f"""{_SCRIPTED}
execution: {{retries: 0, warmups: 1}}
gate: {{seed: 1}}
benchmarks: [{{generator: tests.support.scripted.Scripted, options: {{lasts_s: 0.02}}}}]
arms: {{baseline: {{options: {{save_s: 0.1}}}}, candidate: {{options: {{save_s: 0.13}}}}}}
"""
_RELEASES: Final = f"""{_SCRIPTED}
execution: {{retries: 0, warmups: 0}}
gate: {{seed: 1, operations_per_life: 8}}
benchmarks: [{{generator: tests.support.scripted.Scripted, options: {{save_s: 0.1}}}}]
"""
_TOGETHER: Final = f"""{_SCRIPTED}
num_repeats: 4
execution: {{retries: 0, warmups: 0, timeout_s: 60}}
benchmarks: [{{generator: tests.support.scripted.Scripted, options: {{lasts_s: 0.1}}}}]
"""
_REAL: Final = """
suite_name: chaos
num_repeats: 3
execution: {retries: 0, warmups: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [64, 64]}}}
benchmarks: [{generator: save_restore, options: {use_ocdbt: [true, false]}}]
"""
_RUN: Final = ("run", "suite.yaml", "-o", "place/out", "--no-limits")


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A command and its suite."""

    name: str
    suite: str  # text of the suite, `suite.yaml` in the folder of a trial
    words: tuple[str, ...]  # the command and its flags; results go below `place`
    code: int = 0  # exit code when nothing disturbs it
    before: str = ""  # scenario whose results it reads; they lie in `place` when it begins
    hosts: int = 1  # on how many processes it runs at once, as hosts of one cluster
    wheels: tuple[str, ...] = ()  # releases of a package of which there are wheels, by name only
    real: bool = False  # whether its workers are real, with seconds that nobody knows in advance
    share: int = 0  # out of 1,000 kills, how many are its own


SCENARIOS: Final = {
    scenario.name: scenario
    for scenario in (
        Scenario("run", _SWEEP, _RUN, share=260),
        Scenario("ab", _PAIR, ("ab", "suite.yaml", "-o", "place/out"), code=3, share=100),
        Scenario("report", _SWEEP, ("report", "place/out"), before="run", share=270),
        Scenario(
            "capture",
            _SWEEP,
            (
                *("baseline", "capture", "place/registry", "place/out"),
                *("--promote", "--label", "chaos"),
            ),
            before="run",
            share=300,
        ),
        Scenario(
            "prune",
            _SWEEP,
            ("prune", "place", "--keep", "90d", "--keep-last", "1", "--delete"),
            before="run",
        ),
        Scenario("hosts", _TOGETHER, (*_RUN, "--host-wait", "3"), hosts=2, share=40),
        Scenario(
            "bisect",
            _RELEASES,
            (
                *("bisect", "suite.yaml", "-o", "place/out", "--package", "planted"),
                *("--good", "1.0", "--bad", "1.2", "--wheels", "wheels", "--only-wheels"),
            ),
            code=3,
            wheels=("1.0", "1.1", "1.2"),
            share=20,
        ),
        Scenario(
            "pipeline",
            _SWEEP,
            (
                *("pipeline", "run", "suite.yaml", "-o", "place/out"),
                *("--set", "measure_limits=false"),
            ),
            share=30,
        ),
        Scenario("real", _REAL, _RUN, real=True, share=20),
    )
}
"""Commands that are disturbed, by name."""

SLOW_RELEASES: Final = ("1.1", "1.2")
"""Releases in which a save takes 1.3 times as long."""
