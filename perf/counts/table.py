"""Table of counts: what is tried, how often, and by which command."""

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final


@dataclasses.dataclass(frozen=True, kw_only=True)
class Count:
    """A claim about many trials."""

    name: str  # name of the count, and of its state file
    claim: str  # what holds in each trial
    trials: int  # how many are made
    failures: int = 0  # how many of them may fail
    command: tuple[str, ...]
    """What makes one trial: exit code 0 when the claim holds, and its last line says what was
    seen. `{trial}` stands for the number of the trial, from 0."""
    timeout_s: float = 600.0  # seconds after which a trial has failed

    def file(self, state: Path) -> Path:
        """Returns the file with its trials."""
        return state / f"{self.name}.jsonl"

    def arguments(self, trial: int) -> list[str]:
        """Returns the command of one trial."""
        return [word.replace("{trial}", str(trial)) for word in self.command]


def _python(words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", *words.split())


def _each(
    family: str,
    words: str,
    claims: Mapping[str, str],
    *,
    of: str = "",
    trials: int = 1,
    timeout_s: float = 600.0,
) -> tuple[Count, ...]:
    """Returns a count per kind of a family; in the words `{kind}` stands for the kind."""
    return tuple(
        Count(
            name=f"{family}_{kind}",
            claim=of + claim,
            trials=trials,
            command=_python(words.replace("{kind}", kind)),
            timeout_s=timeout_s,
        )
        for kind, claim in claims.items()
    )


_FAULT: Final = "perf.hosts --trial {trial} --fault {kind}"

_REAL_FAULTS: Final = {
    "worker_killed": "a worker that is killed is named in 10 s, and the retry passes",
    "agent_killed": "one whose agent is killed is named in 10 s, comes back, and the retry passes",
    "cut_briefly": "a network that is gone for 4 s is no failure",
    "slow_link": "a link of 256 kbit/s is no failure",
}
"""Faults of one of three hosts, of which JAX has something to say as well."""

_FAULTS: Final = {
    "cut_for_good": "one that is cut off is named in 10 s, ends the run 5 s later, and it resumes",
    "frozen": "one that is frozen is named in 10 s, and changes no final record when it goes on",
    "head_killed": "agents and workers are gone 5 s after process 0, and the run resumes",
    "preempted": "one that is told to end is gone in 30 s and named, and the run resumes",
    "wrong_token": "an agent with another token is refused, with a reason on both sides in 10 s",
    "silent_connection": "somebody who connects and says nothing is refused, and harms no run",
    "version_mismatch": "one with another JAX is refused, with a reason on both sides in 10 s",
    "folder_not_shared": "one whose run directory is another folder is refused in the same way",
}
"""Faults that end workers from outside, or none has begun: workers follow a script."""

_SOAKS: Final = {
    "ar1": "of series with noise of 2 MiB and correlation 0.9, at most 1 % end in LEAK",
    "step": "of series with one step of 6 MiB, at most 1 % end in LEAK",
    "warm_up": "of series that fill a heap of 30 MiB, at most 1 % end in LEAK",
    "leak": "of series that keep 0.5 MiB a save in noise of 2 MiB, at least 99 % end in LEAK",
}
"""Simulated soaks of 200 saves, 1,000 of each."""

_VERDICTS: Final = (
    ("same", "slower=0", 20, 0, "real saves beside themselves do not regress"),
    ("tolerated", "slower=0.05", 20, 0, "nor do saves that are slower by a third of the margin"),
    (
        "slower",
        "slower=0.5",
        20,
        1,
        "saves that take half as long again regress, their loads do not",
    ),
    ("fifth", "slower=0.2", 20, 2, "so do saves that take 20 % longer"),
    ("stalls", "stalls=0.1", 10, 1, "saves of which a tenth take 20 times as long do not pass"),
    ("after", "after=0.5", 10, 0, "saves that hold the next one up by a half do not pass"),
)
"""Real comparisons whose answer is known: name, what is planted, trials, failures and claim."""

COUNTS: Final = (
    Count(
        name="orphans",
        claim="a worker whose orchestrator was killed overwrites no final record",
        trials=200,
        command=_python("tests.support.orphans --real"),
    ),
    Count(
        name="fence",
        claim="nor does one that the kernel did not end, which the fence alone stops",
        trials=200,
        command=_python("tests.support.orphans"),
    ),
    *_each("hosts", f"{_FAULT} --real", _REAL_FAULTS, of="of three hosts, ", trials=20),
    *_each("hosts", _FAULT, _FAULTS, of="of three hosts, ", trials=20),
    *_each("soak", "perf.soak --simulate {kind}", _SOAKS, timeout_s=7200.0),
    Count(
        name="soak_planted",
        claim="a planted leak of 1 MiB a save is found in 200 real saves",
        trials=10,
        command=_python("perf.soak --trial {trial} --real 1.0"),
    ),
    Count(
        name="soak_clean",
        claim="200 real saves without one end in PASS",
        trials=10,
        command=_python("perf.soak --trial {trial} --real 0.0"),
    ),
    *(
        Count(
            name=f"verdict_{name}",
            claim=claim,
            trials=trials,
            failures=failures,
            command=_python(f"perf.verdicts {planted} --trial {{trial}}"),
            timeout_s=1800.0,
        )
        for name, planted, trials, failures, claim in _VERDICTS
    ),
    Count(
        name="verdict_nights",
        claim="saves of which 5 % fail are named by the history of ten nights",
        trials=1,
        command=_python("perf.verdicts fails=0.05 --nights 10 --trial {trial}"),
        timeout_s=7200.0,
    ),
    Count(
        name="chaos",
        claim="whatever is killed or disturbed leaves, run again, what it would have left",
        trials=1,
        command=_python("perf.chaos"),
        timeout_s=14_400.0,
    ),
    Count(
        name="demo",
        claim="the demo, a suite against itself, ends in PASS",
        trials=20,
        command=_python("perf.demo --real"),
    ),
    Count(
        name="demo_replayed",
        claim="of the recorded times of the demo and of the CI example, 95 of 100 end in PASS",
        trials=1,
        command=_python("perf.demo"),
    ),
    Count(
        name="extended",
        claim="the variations of nightly tests pass",
        trials=1,
        command=_python("pytest -m extended -n 2 --dist loadfile -q"),
        timeout_s=7200.0,
    ),
    Count(
        name="fuzz",
        claim="500 inputs that nobody meant are refused by a message or accepted for what they say",
        trials=100,
        command=_python("tests.support.fuzz --trial {trial}"),
    ),
    Count(
        name="best",
        claim="every figure of the choice of options holds, with 1,000 studies",
        trials=1,
        command=_python("perf.best"),
        timeout_s=3600.0,
    ),
    Count(
        name="plan_layouts",
        claim="of real saves by 1, 2 and 4 processes, chunks are as planned, bytes within 2 %",
        trials=1,
        command=_python("tests.support.real_saves"),
        timeout_s=7200.0,
    ),
    Count(
        name="gate",
        claim="every figure of the gate holds, with all replicates",
        trials=1,
        command=_python("perf.gate --jobs 2 --state build/counts/gate_figures.jsonl"),
        timeout_s=7200.0,
    ),
)
"""All counts, in the order in which they are made."""
