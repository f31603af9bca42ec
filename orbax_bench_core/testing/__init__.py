"""Test tools for benchmark authors.

`run_benchmark` runs a class in this process as a worker would, and gives back all that it measured.
With `pytest_plugins = ["orbax_bench_core.testing.plugin"]` in a `conftest.py` it is a fixture, and
JAX has simulated devices.
"""

from orbax_bench_core.testing.outcome import Outcome
from orbax_bench_core.testing.run import make_context, run_benchmark

__all__ = ["Outcome", "make_context", "run_benchmark"]
