from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import pytest

from orbax_bench_core.config import CheckpointConfig
from orbax_bench_core.state.digests import digest
from orbax_bench_core.state.loading import load_checkpoint, save_fixture
from orbax_bench_core.state.tree import StateError


@pytest.mark.slow
def test_a_fixture_loads_as_it_was(tmp_path: Path) -> None:
    tree = {"w": jnp.arange(8), "name": "abc", "step": 3}
    save_fixture(tree, str(tmp_path / "fixture"))
    loaded = load_checkpoint(CheckpointConfig(path=str(tmp_path / "fixture")))
    assert digest(loaded) == digest(tree)


@pytest.mark.slow
def test_an_earlier_fixture_is_replaced(tmp_path: Path) -> None:
    save_fixture({"old": jnp.arange(8)}, str(tmp_path / "fixture"))
    save_fixture({"new": jnp.arange(8)}, str(tmp_path / "fixture"))
    assert list(load_checkpoint(CheckpointConfig(path=str(tmp_path / "fixture")))) == ["new"]


def test_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(StateError, match="is not a checkpoint, so it is not overwritten"):
        save_fixture({"w": jnp.arange(8)}, str(tmp_path))
    assert (tmp_path / "thesis.txt").exists()
