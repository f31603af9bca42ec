"""A model of Flax NNX from one number of devices to another."""

from pathlib import Path

import pytest

pytest.importorskip("flax")

from orbax_bench_core.state import nnx, orbax_api
from orbax_bench_core.testing import run_benchmark

MESH = {"mesh_axes": ["fsdp"], "ici_parallelism": {"fsdp": 8}}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))

    def call(mesh=MESH, checkpoint=None, **options):
        return run_benchmark(
            "nnx_restore",
            str(tmp_path / "run"),
            options={"inputs": "nnx_tiny:inputs", **options},
            checkpoint={"nnx": "nnx_tiny:Tiny"} if checkpoint is None else checkpoint,
            mesh=mesh,
        )

    return call


@pytest.mark.slow
def test_fewer_and_more_devices_hold_the_same_model(run, monkeypatch):
    onto = []
    load = orbax_api.load

    def noted(path, target):
        onto.append(len(target["kernel"].sharding.device_set))
        return load(path, target)

    monkeypatch.setattr(orbax_api, "load", noted)
    outcomes = run(save_devices=4, restore_devices=[2, 8, None])
    for outcome in outcomes:
        outcome.assert_verified()
        outcome.assert_measured("save_blocking", "save_background", "save", "load")
    assert onto == [2, 8, 8]


@pytest.mark.slow
def test_outputs_that_differ_fail_the_repeat(run, monkeypatch):
    merge = nnx.merge
    factors = iter([1.0, 1.1])

    def spoiled(factory, tree):
        factor = next(factors)
        return merge(factory, {"kernel": tree["kernel"] * factor})

    monkeypatch.setattr(nnx, "merge", spoiled)
    (outcome,) = run()
    with pytest.raises(AssertionError, match="output 0 of the restored model differs"):
        outcome.assert_passed()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mesh": None}, "nnx_restore needs a model and a mesh"),
        ({"checkpoint": {"spec": {}}}, "nnx_restore needs a model and a mesh"),
        ({"restore_devices": 16}, "16 of them form no mesh with the same axes"),
        ({"inputs": "nnx_tiny:absent"}, "cannot import 'nnx_tiny:absent'"),
    ],
)
def test_what_is_missing_is_named(run, given, message):
    (outcome,) = run(**given)
    with pytest.raises(AssertionError, match=message):
        outcome.assert_passed()
