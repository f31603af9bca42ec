"""Saves in two parts, of Orbax's v0 interface."""

import jax
import jax.numpy as jnp
import pytest
from etils import epath

from orbax_bench_core.authoring import BenchmarkOptions, TestContext
from orbax_bench_core.benchmarks.support.v0 import measure_two_part_save, restore_target
from orbax_bench_core.measure import Metrics

from .conftest import TIME

TREE = {"w": jnp.arange(6.0), "step": 3}


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
    def run(finish, conditioner=None):
        path = epath.Path(tmp_path)
        context = TestContext(
            pytree=None, path=path, options=BenchmarkOptions(), conditioner=conditioner
        )
        metrics = Metrics()
        measure_two_part_save(
            metrics, context, path, TREE, begin=lambda: None, finish=finish, collectors=["time"]
        )
        return metrics

    return run


def operations(metrics):
    return [one.operation for one in metrics.samples if one.metric == TIME]


def test_the_parts_end_before_the_whole(save):
    metrics = save(lambda: None)
    assert operations(metrics) == ["save_blocking", "save_background", "save"]


def test_what_only_blocks_has_no_background(save):
    assert operations(save(None)) == ["save_blocking", "save"]


def test_bytes_are_those_of_the_arrays(save):
    assert save(None).results["save_5_inventory/operation_bytes"] == (6 * 8, "bytes")


def test_durability_is_measured_where_it_is_asked_for(save, tmp_path):
    disk = Durable()
    assert operations(save(lambda: None, disk))[-1] == "save_durable"
    assert disk.synced == [epath.Path(tmp_path)]


def test_the_target_of_a_restore_has_no_values():
    target = restore_target(TREE)
    assert isinstance(target["w"], jax.ShapeDtypeStruct)
    assert (target["w"].shape, target["w"].sharding) == ((6,), TREE["w"].sharding)
    assert target["step"] == 3
