"""`orbax-bench sharding`."""

import json

import pytest


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    import jax
    from orbax.checkpoint import v1 as ocp

    path = tmp_path_factory.mktemp("saved") / "check point"
    ocp.save(path, {"w": jax.numpy.ones((8, 4))})
    return path


@pytest.mark.slow
def test_the_sharding_file_is_printed(orbax_bench, checkpoint):
    done = orbax_bench("sharding", checkpoint, "--mesh", "fsdp=4")
    assert done.code == 0, done.err
    assert json.loads(done.out)["w"]["sharding"] == {
        "mesh": {"shape": [4], "axes": ["fsdp"]},
        "spec": ["fsdp", None],
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mesh", "message"),
    [("fsdp=4", "is not a checkpoint"), ("fsdp", "expected a mesh such as")],
)
def test_what_is_wrong_is_one_message(orbax_bench, tmp_path, checkpoint, mesh, message):
    given = tmp_path if mesh == "fsdp=4" else checkpoint
    done = orbax_bench("sharding", given, "--mesh", mesh)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert message in done.err
