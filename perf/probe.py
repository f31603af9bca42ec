"""Setting of the harness's probes: the other side, and measurements that are taken in turn."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from perf.pairing import Figure, Pairs
from perf.process import run

# The module that its runner fails on when clu, TensorFlow or TensorBoard is missing.
_FIND: Final = """
import os
from orbax.checkpoint._src.testing.benchmarks.core import core
print(os.path.join(os.path.dirname(os.path.dirname(core.__file__)), "run_benchmarks.py"))
"""


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """The upstream framework."""

    python: str  # interpreter whose environment has it
    runner: str  # path of its `run_benchmarks.py`


def find_upstream(python: str) -> Upstream:
    """Looks for the framework, and for all that it needs, where `python` finds its packages.

    Raises:
        ProbeFailed: It cannot be imported there.
    """
    found = run([python, "-c", _FIND], environment={"JAX_PLATFORMS": "cpu"}, keep_output=True)
    return Upstream(python=python, runner=found.output.strip().splitlines()[-1])


def say(line: str) -> None:
    """Shows a line of progress."""
    print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Setting of a measurement."""

    rounds: int  # pairs per figure, at least 1; the one that is discarded is not counted
    upstream: Upstream | None = None  # the other side; None when there is none

    def pairs(
        self, name: str, ours: Callable[[], Any], theirs: Callable[[], Any] | None = None
    ) -> Pairs:
        """Measures both sides in turn, so that a drifting machine slows both members of a pair.

        The first pair is thrown away: it fills byte code and page caches.

        Args:
            name: What people call it.
            ours: Measures our side once.
            theirs: Measures the other side once; None when there is none.
        """
        mine, others = [], []
        for index in range(1 + self.rounds):
            turn = f"{name}: {f'{index} of {self.rounds}' if index else 'warm-up'}"
            say(f"{turn}, ours")
            mine.append(ours())
            if theirs is not None:
                say(f"{turn}, upstream")
                others.append(theirs())
        return Pairs(ours=tuple(mine[1:]), upstream=tuple(others[1:]) if theirs else None)


Probe = Callable[[Setting], list[Figure]]
