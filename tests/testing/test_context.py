"""A context made by hand."""

import pytest

from orbax_bench_core.authoring import BenchmarkOptions, VerificationError
from orbax_bench_core.state import MeshDoesNotFit
from orbax_bench_core.testing import make_context

MESH = {"mesh_axes": ["fsdp"], "ici_parallelism": {"fsdp": 8}}


@pytest.mark.slow
def test_the_tree_lies_on_the_mesh(tmp_path):
    context = make_context(
        str(tmp_path),
        BenchmarkOptions(),
        checkpoint={"spec": {"w": {"dtype": "int8", "shape": [16], "sharding": ["fsdp"]}}},
        mesh=MESH,
    )
    assert context.pytree["w"].sharding.mesh == context.mesh
    assert context.path.exists()


@pytest.mark.slow
def test_a_preset_may_be_the_checkpoint(tmp_path):
    context = make_context(
        str(tmp_path), BenchmarkOptions(), checkpoint={"model": "llama-8b", "scale": 0.01}
    )
    assert context.pytree["params"]["params"]["decoder"]["decoder_norm"]["scale"].shape == (64,)


def test_verification_compares_with_what_is_expected(tmp_path):
    spec = {"spec": {"a": {"b": {"dtype": "int8", "shape": [16]}}, "c": "int"}}
    context = make_context(str(tmp_path), BenchmarkOptions(), checkpoint=spec)
    part = {"a": context.pytree["a"]}
    context.verify(part, part)
    with pytest.raises(VerificationError, match=r"a\.b: different"):
        context.verify({"a": {"b": part["a"]["b"] + 1}}, part)
    with pytest.raises(VerificationError, match="c: missing"):
        context.verify(part)


def test_devices_that_are_not_there_are_an_error(tmp_path):
    mesh = {"mesh_axes": ["x"], "ici_parallelism": {"x": 16}}
    with pytest.raises(MeshDoesNotFit):
        make_context(str(tmp_path), BenchmarkOptions(), mesh=mesh)
