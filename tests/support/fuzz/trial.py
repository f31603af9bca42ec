"""Trial of fuzzing: 500 inputs, the same for the same number of the trial."""

from __future__ import annotations

import argparse
import collections
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import hypothesis

from tests.support.fuzz.doors import DOORS, Broken, Given, Place, attempt
from tests.support.fuzz.inputs import given

PER_TRIAL = 500
_FOUND = Path("build/fuzz")


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes one trial; returns 0 when every input held, 1 otherwise.

    Args:
        arguments: Command line without the program; None takes the process's own.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.support.fuzz", description=__doc__)
    parser.add_argument("--trial", type=int, default=0, help="which one, from 0")
    parser.add_argument("--inputs", type=int, default=PER_TRIAL, help="how many inputs")
    parser.add_argument("--door", choices=sorted(DOORS), help="only this door")
    parser.add_argument("--again", type=Path, help="a file of the corpus, in place of a trial")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        inside = Path(folder, "a", "b", "c")  # a path with `..` in it stays in the folder
        inside.mkdir(parents=True)
        place = Place(inside / "place")
        if options.again is not None:
            attempt(Given.load(options.again.read_text()), place)
            return 0
        return _try(place, options.trial, options.inputs, options.door)


def _try(place: Place, trial: int, inputs: int, door: str | None) -> int:
    seen: collections.Counter[str] = collections.Counter()
    accepted = 0
    broken: dict[str, Given] = {}
    strategy = given(place)
    if door is not None:
        strategy = strategy.filter(lambda one: one.door == door)

    # Every input is made and looked at: a find ends none, and shrinks none.
    @hypothesis.seed(trial)
    @hypothesis.settings(
        max_examples=inputs,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate,),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def look(one: Given) -> None:
        nonlocal accepted
        seen[one.door] += 1
        try:
            accepted += attempt(one, place)
        except Broken as found:
            said = " ".join(str(found).split())[:160]
            if said not in broken or len(one.content) < len(broken[said].content):
                broken[said] = one

    look()
    for number, (said, one) in enumerate(broken.items()):
        _FOUND.mkdir(parents=True, exist_ok=True)
        file = _FOUND / f"trial_{trial}_{number}.json"
        file.write_text(one.dump())
        print(f"{file}: {said}")
    shares = ", ".join(f"{count} {name}" for name, count in sorted(seen.items()))
    total = sum(seen.values())
    print(f"{total} inputs ({shares}), {accepted} accepted, {len(broken)} kinds broken")
    return 1 if broken or total < inputs else 0
