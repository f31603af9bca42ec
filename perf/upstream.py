"""Search for the upstream framework in another interpreter's environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perf.process import run

# The module that its runner fails on when clu, TensorFlow or TensorBoard is missing.
_FIND: Final = """
import os
from orbax.checkpoint._src.testing.benchmarks.core import core
print(os.path.join(os.path.dirname(os.path.dirname(core.__file__)), "run_benchmarks.py"))
"""


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """The upstream framework.

    Attributes:
        python: Interpreter whose environment has it.
        runner: Path of its `run_benchmarks.py`.
    """

    python: str
    runner: str


def find_upstream(python: str) -> Upstream:
    """Looks for the framework, and for all that it needs, where `python` finds its packages.

    Raises:
        ProbeFailed: It cannot be imported there.
    """
    found = run([python, "-c", _FIND], environment={"JAX_PLATFORMS": "cpu"}, keep_output=True)
    return Upstream(python=python, runner=found.output.strip().splitlines()[-1])
