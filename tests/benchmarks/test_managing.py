"""Offering steps to a `CheckpointManager`."""

import jax.numpy as jnp
import orbax.checkpoint as ocp
import pytest
from etils import epath

from orbax_bench_core.authoring import BenchmarkOptions, TestContext
from orbax_bench_core.benchmarks.support.v0 import measure_step, open_checkpoint_manager
from orbax_bench_core.measure import Metrics

from .conftest import TIME

TREE = {"w": jnp.arange(6.0)}


@pytest.fixture
def offer(tmp_path):
    path = epath.Path(tmp_path)
    context = TestContext(pytree=TREE, path=path, options=BenchmarkOptions())

    def run(steps, **options):
        metrics = Metrics()
        with open_checkpoint_manager(path / "steps", **options) as manager:
            saved = [
                measure_step(
                    metrics,
                    context,
                    manager,
                    step,
                    tree=TREE,
                    arguments=ocp.args.StandardSave(TREE),
                    directory=path / "steps",
                )
                for step in range(steps)
            ]
        return saved, [one.operation for one in metrics.samples if one.metric == TIME]

    return run


def test_what_is_saved_and_what_is_skipped_have_names_of_their_own(offer):
    saved, operations = offer(3, save_interval_steps=2)
    whole = ["save_blocking", "save_background", "save"]
    assert saved == [True, False, True]
    assert operations == [*whole, "skip", *whole]


def test_the_manager_is_closed_whatever_happens(tmp_path, monkeypatch):
    closed = []
    close = ocp.CheckpointManager.close
    monkeypatch.setattr(
        ocp.CheckpointManager, "close", lambda self: (closed.append(1), close(self))
    )
    with pytest.raises(KeyError), open_checkpoint_manager(epath.Path(tmp_path) / "steps"):
        raise KeyError
    assert closed == [1]
