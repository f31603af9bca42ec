"""Pytest plugin: `pytest_plugins = ["orbax_bench_core.testing.plugin"]` in a `conftest.py`.

It gives JAX simulated CPU devices, eight or as many as the ini option `orbax_bench_devices` says,
and two fixtures, `run_benchmark` and `benchmark_context`.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orbax_bench_core.interface import TestContext
from orbax_bench_core.testing.outcome import Outcome
from orbax_bench_core.testing.run import make_context
from orbax_bench_core.testing.run import run_benchmark as run_in
from orbax_bench_core.worker import simulate_devices


def pytest_addoption(parser: pytest.Parser) -> None:
    """Registers the ini option."""
    parser.addini(
        "orbax_bench_devices", "CPU devices that JAX simulates for benchmark tests", default="8"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Sets up JAX as a worker does, before a test can use it."""
    import jax

    simulate_devices(int(config.getini("orbax_bench_devices")))
    jax.config.update("jax_enable_x64", True)


@pytest.fixture
def run_benchmark(tmp_path: Path) -> Callable[..., list[Outcome]]:
    """Runs a benchmark as `orbax_bench_core.testing.run_benchmark` does, in a fresh directory."""
    return functools.partial(run_in, directory=str(tmp_path / "run"))


@pytest.fixture
def benchmark_context(tmp_path: Path) -> Callable[..., TestContext]:
    """Makes a context as `orbax_bench_core.testing.make_context` does, in a fresh directory."""

    def make(options: Any, **blocks: Any) -> TestContext:
        directory = tmp_path / "context"
        directory.mkdir(exist_ok=True)
        return make_context(str(directory), options, **blocks)

    return make
