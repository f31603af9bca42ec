"""Table of counts: what is tried, how often, and by which command."""

from __future__ import annotations

import dataclasses
import sys
from typing import Final


@dataclasses.dataclass(frozen=True, kw_only=True)
class Count:
    """A claim about many trials.

    Attributes:
        name: Name of the count, and of its state file.
        claim: What holds in each trial.
        trials: How many are made.
        failures: How many of them may fail.
        command: What makes one trial: exit code 0 when the claim holds, and its last line says what
            was seen. `{trial}` stands for the number of the trial, from 0.
        timeout_s: Seconds after which a trial has failed.
    """

    name: str
    claim: str
    trials: int
    failures: int = 0
    command: tuple[str, ...]
    timeout_s: float = 600.0

    def arguments(self, trial: int) -> list[str]:
        """Returns the command of one trial."""
        return [word.replace("{trial}", str(trial)) for word in self.command]


def _python(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", *words)


COUNTS: Final = (
    Count(
        name="orphans",
        claim="a worker whose orchestrator was killed overwrites no final record",
        trials=200,
        command=_python("tests.support.orphans", "--real"),
    ),
    Count(
        name="fence",
        claim="nor does one that the kernel did not end, which the fence alone stops",
        trials=200,
        command=_python("tests.support.orphans"),
    ),
    Count(
        name="liveness",
        claim="of two hosts, the one that was frozen or killed is named, and the retry passes",
        trials=20,
        command=_python("perf.liveness", "--trial", "{trial}"),
    ),
    Count(
        name="demo",
        claim="the demo, a suite beside itself, ends in PASS",
        trials=20,
        command=_python("perf.demo", "--real"),
    ),
    Count(
        name="demo_replayed",
        claim="of the recorded times of the demo and of the CI example, 95 of 100 end in PASS",
        trials=1,
        command=_python("perf.demo"),
    ),
    Count(
        name="gate",
        claim="every figure of the gate holds, with all replicates",
        trials=1,
        command=_python("perf.gate", "--jobs", "2", "--state", "build/counts/gate_figures.jsonl"),
        timeout_s=7200.0,
    ),
)
"""All counts, in the order in which they are made."""
