"""Trial of fuzzing: 500 inputs, the same for the same number of the trial."""

import argparse
import collections
import dataclasses
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


@dataclasses.dataclass
class Found:
    """What was seen of a number of inputs.

    Attributes:
        seen: How many each door was given.
        accepted: How many were accepted.
        broken: The shortest input of each kind that did what none may, by what that was.
    """

    seen: collections.Counter[str]
    accepted: int
    broken: dict[str, Given]


def look_at(place: Place, *, seed: int, inputs: int, door: str | None = None) -> Found:
    """Hands drawn inputs to their doors; a find ends nothing and is not made shorter."""
    found = Found(collections.Counter(), 0, {})
    strategy = given(place)
    if door is not None:
        strategy = strategy.filter(lambda one: one.door == door)

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=inputs,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate,),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def look(one: Given) -> None:
        found.seen[one.door] += 1
        try:
            found.accepted += attempt(one, place)
        except Broken as broken:
            said = " ".join(str(broken).split())[:160]
            known = found.broken.get(said)
            if known is None or len(one.content) < len(known.content):
                found.broken[said] = one

    look()
    return found


def _try(place: Place, trial: int, inputs: int, door: str | None) -> int:
    found = look_at(place, seed=trial, inputs=inputs, door=door)
    for number, (said, one) in enumerate(found.broken.items()):
        _FOUND.mkdir(parents=True, exist_ok=True)
        file = _FOUND / f"trial_{trial}_{number}.json"
        file.write_text(one.dump())
        print(f"{file}: {said}")
    shares = ", ".join(f"{count} {name}" for name, count in sorted(found.seen.items()))
    total = found.seen.total()
    said = f"{found.accepted} accepted, {len(found.broken)} kinds broken"
    print(f"{total} inputs ({shares}), {said}")
    return 1 if found.broken or total < inputs else 0
