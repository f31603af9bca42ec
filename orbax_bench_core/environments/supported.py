"""Requirements of a worker, and the JAX versions that releases of Orbax work with."""

from collections.abc import Mapping
from typing import Final, NamedTuple

OLDEST_PYTHON: Final = (3, 11)

OLDEST_ORBAX: Final = "0.11.12"
"""The first release of orbax-checkpoint with `orbax.checkpoint.v1`."""

OLDEST_JAX: Final = "0.5.0"
"""The oldest JAX that any such release accepts."""

WORKER_REQUIREMENTS: Final = (
    "etils[epath]",
    "jax",
    "numpy",
    "orbax-checkpoint",
    "psutil",
    "pydantic>=2.12",
    "pyyaml",
)
"""Imports of the worker. There are no upper bounds: a suite chooses its versions freely."""

WORKER_MODULES: Final[Mapping[str, str]] = {
    "numpy": "numpy",
    "psutil": "psutil",
    "pydantic": "pydantic",
    "yaml": "pyyaml",
    "etils.epath": "etils",
    "jax": "jax",
    "orbax.checkpoint": "orbax-checkpoint",
    "orbax_bench_core.worker.__main__": "orbax-bench",
}
"""Its modules and the distributions that they come from, in the order in which they are tried."""


class Rule(NamedTuple):
    """Requirement, as pip spells it, that some releases of Orbax have and do not declare."""

    first: str
    last: str
    needs: str


RULES: Final = (
    Rule("0.11.12", "0.11.16", "jax<0.7"),
    Rule("0.11.17", "0.11.17", "jax>=0.6.2"),
    Rule("0.11.26", "0.11.28", "jax>=0.6.2"),
    Rule("0.11.34", "0.11.34", "flax"),
)
"""Found by running `save_restore` with the releases up to 0.12.8, on JAX 0.5.0 to 0.10.2. All
others work with the JAX versions that they accept."""


class EnvironmentFailed(Exception):
    """An environment could not be made, or cannot run a worker; `output` is what a program said."""

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output
