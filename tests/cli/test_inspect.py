"""`orbax-bench sharding`."""

import json

import pytest
import typer
from typer.testing import CliRunner

from orbax_bench_core.cli.plan import sharding
from orbax_bench_core.errors import UserError


@pytest.fixture
def invoke():
    app = typer.Typer()
    app.command()(sharding)
    return lambda *arguments: CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    import jax
    from orbax.checkpoint import v1 as ocp

    path = tmp_path_factory.mktemp("saved") / "check point"
    ocp.save(path, {"w": jax.numpy.ones((8, 4))})
    return path


@pytest.mark.slow
def test_the_sharding_file_is_printed(invoke, checkpoint):
    result = invoke(checkpoint, "--mesh", "fsdp=4")
    assert result.exit_code == 0, result
    assert json.loads(result.stdout)["w"]["sharding"] == {
        "mesh": {"shape": [4], "axes": ["fsdp"]},
        "spec": ["fsdp", None],
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mesh", "message"),
    [("fsdp=4", "is not an Orbax checkpoint"), ("fsdp", "expected a mesh such as")],
)
def test_what_is_wrong_is_one_message(invoke, tmp_path, checkpoint, mesh, message):
    given = tmp_path if mesh == "fsdp=4" else checkpoint
    result = invoke(given, "--mesh", mesh)
    assert isinstance(result.exception, UserError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
