"""Parameters of every kind of checkpoint."""

from pathlib import Path

import pytest

from orbax_bench_core.analysis.async_study.study import ParameterCounter, parameters_in
from orbax_bench_core.config import CheckpointConfig, MeshConfig

ARRAY = {"dtype": "float32", "shape": [10, 10]}


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"params": ARRAY}, 100),
        ({"params": {"a": ARRAY, "b": ARRAY}, "opt_state": {"mu": ARRAY}, "step": "int"}, 200),
        ({"params": ARRAY, "batch_stats": ARRAY}, 100),
        ({"layer_0": ARRAY, "layer_1": {"w": ARRAY}}, 200),
        ({"model": ARRAY, "optimizer": {"m": ARRAY}, "step": {"dtype": "int32", "shape": []}}, 100),
        ({"scale": {"dtype": "float32", "shape": []}}, 1),
    ],
)
def test_a_spec_is_counted_without_the_state_of_its_optimizer(spec, count):
    assert parameters_in(CheckpointConfig(spec=spec).spec) == count


@pytest.mark.parametrize("optimizer", ["none", "sgd", "adamw"])
def test_a_preset_has_the_parameters_of_its_model(make_point, optimizer):
    point = make_point(checkpoint=CheckpointConfig(model="llama-8b", optimizer=optimizer))
    assert ParameterCounter()(point) == 8_030_261_248


def test_a_point_whose_preset_is_a_spec_by_now_counts_the_same(make_point):
    mesh = MeshConfig(mesh_axes=["fsdp"], ici_parallelism={"fsdp": 8})
    checkpoint = CheckpointConfig(model="llama-8b", scale=0.1, optimizer="adamw")
    point = make_point(checkpoint=checkpoint, mesh=mesh)
    assert point.with_presets_expanded().checkpoint.model is None
    counter = ParameterCounter()
    assert counter(point) == counter(point.with_presets_expanded()) == 90_919_360


@pytest.mark.parametrize("fields", [{}, {"path": "/there/is/one"}, {"spec": {"step": "int"}}])
def test_what_nothing_tells_is_not_guessed(make_point, fields):
    assert ParameterCounter()(make_point(checkpoint=CheckpointConfig(**fields))) is None


@pytest.mark.slow
def test_an_nnx_model_beside_the_suite_is_counted(make_point):
    pytest.importorskip("flax")
    suite = Path(__file__).parents[2] / "state" / "suite.yaml"
    counter = ParameterCounter(str(suite))
    many = make_point(checkpoint=CheckpointConfig(nnx="nnx_models:Many"))
    assert counter(many) == 11 * 16 * 16  # neither statistics nor random keys


@pytest.mark.slow
def test_an_nnx_model_that_cannot_be_imported_is_not_counted(make_point):
    assert ParameterCounter()(make_point(checkpoint=CheckpointConfig(nnx="nowhere:Model"))) is None
