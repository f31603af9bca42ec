"""Operations of every measured save."""

import contextlib

import jax.numpy as jnp
import pytest
from etils import epath

from orbax_bench_core.authoring import BenchmarkOptions, TestContext
from orbax_bench_core.benchmarks.support.saving import measure_save
from orbax_bench_core.measure import Metrics

TREE = {"w": jnp.arange(6.0)}


class Durable:
    """Asks for durability; the test's own stand-in for the disk."""

    durable = True

    def __init__(self):
        self.synced = []

    def make_durable(self, checkpoint):
        self.synced.append(checkpoint)

    def prepare_load(self, operation, checkpoint):
        raise AssertionError("nothing is loaded")


@pytest.fixture
def save(tmp_path):
    def run(**arguments):
        conditioner = arguments.pop("conditioner", None)
        path = epath.Path(tmp_path)
        context = TestContext(
            pytree=None, path=path, options=BenchmarkOptions(), conditioner=conditioner
        )
        metrics = Metrics()
        measure_save(metrics, context, path / "ckpt", TREE, collectors=["time"], **arguments)
        return [sample.operation for sample in metrics.samples if sample.metric.endswith("time_s")]

    return run


def noting(events):
    @contextlib.contextmanager
    def note():
        events.append("begins")
        try:
            yield
        finally:
            events.append("ended")

    return note()


def test_durable_is_around_the_whole(save):
    conditioner = Durable()
    operations = save(asynchronous=False, conditioner=conditioner)
    assert operations == ["save_blocking", "save", "save_durable"]
    assert [path.name for path in conditioner.synced] == ["ckpt"]


def test_something_can_go_on_beside_the_background_part(save):
    events = []
    save(asynchronous=True, meanwhile=noting(events))
    assert events == ["begins", "ended"]


def test_what_goes_on_beside_a_save_that_fails_is_told_to_end(save, monkeypatch):
    from orbax.checkpoint import v1 as ocp

    class Failing:
        def result(self):
            raise OSError("disk full")

    monkeypatch.setattr(ocp, "save_async", lambda path, tree: Failing())
    events = []
    with pytest.raises(OSError, match="disk full"):
        save(asynchronous=True, meanwhile=noting(events))
    assert events == ["begins", "ended"]
