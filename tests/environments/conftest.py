"""Environments in a cache of their own."""

import stat

import pytest

from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.environments import make_environments


@pytest.fixture
def make(tmp_path):
    """Makes environments and returns them with what was said."""

    def make(*configs, cache=tmp_path / "cache"):
        said = []
        found = make_environments(
            [EnvironmentConfig(**{"name": f"e{i}"} | one) for i, one in enumerate(configs)],
            folder=tmp_path,
            say=said.append,
            cache=cache,
        )
        return list(found.values()), said

    return make


@pytest.fixture
def script(tmp_path):
    """Makes a program that answers as an interpreter would."""

    def script(body, name="python"):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return script
