import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import typer.testing
from etils import epath
from orbax.checkpoint import v1 as ocp
from orbax.checkpoint._src.testing.benchmarks.orbax_load.sharding import generate_from_metadata
from orbax.checkpoint._src.testing.benchmarks.safetensors import prepare
from safetensors.flax import save_file

from orbax_bench_core.cli.main import app
from orbax_bench_core.config import CheckpointConfig
from orbax_bench_core.errors import UserError
from orbax_bench_core.state import digest, load_checkpoint, read_sharding_file


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = {
        "even": np.arange(64, dtype=np.float32).reshape(8, 8),
        "odd": np.arange(63, dtype=np.int32).reshape(7, 9),
        "cube": np.ones((4, 3, 16), dtype=np.float16),
        "vector": np.arange(8, dtype=np.float32),
        "scalar": np.array(3, dtype=np.int32),
        "nested": {"bf": jax.numpy.ones((16, 2), "bfloat16")},
    }
    path = tmp_path_factory.mktemp("saved") / "checkpoint"
    ocp.save(path, jax.tree.map(jax.numpy.asarray, tree))
    return path


def _printed(path: Path, mesh: str) -> str:
    result = typer.testing.CliRunner().invoke(app, ["sharding", str(path), "--mesh", mesh])
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.mark.parametrize(
    ("mesh", "spec"),
    [
        ({"fsdp": 8}, ["fsdp", None]),
        ({"tp": 8}, [None, "tp"]),
        ({"model": 8}, [None, "model"]),
        ({"data": 8}, [None, None]),
        ({"replica": 2, "model": 4}, [None, "model"]),
        ({"data": 2, "fsdp": 2, "tensor": 2}, ["fsdp", "tensor"]),
        ({"fsdp": 2, "x": 4}, [["fsdp", "x"], None]),
        ({"fsdp": 3}, [None, None]),
        ({"fsdp": 4, "x": 4}, ["fsdp", None]),
    ],
)
def test_the_names_of_the_axes_decide_what_they_shard(
    saved: Path, mesh: dict[str, int], spec: list[Any]
) -> None:
    content = json.loads(_printed(saved, ",".join(f"{axis}={mesh[axis]}" for axis in mesh)))
    assert content["even"]["sharding"]["spec"] == spec
    assert content["vector"]["sharding"]["spec"] == [None]
    assert content["scalar"]["sharding"]["spec"] == []


@pytest.mark.parametrize(
    ("axis", "strategy"), [("fsdp", "fsdp"), ("tp", "tp_inner")], ids=["fsdp", "tp"]
)
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_a_mesh_of_one_axis_gives_what_orbaxs_own_tool_gives(
    saved: Path, axis: str, strategy: str, size: int
) -> None:
    assert json.loads(_printed(saved, f"{axis}={size}")) == generate_from_metadata.build_config(
        str(saved), size, strategy
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    tree = {
        "even": jax.numpy.ones((16, 8), "bfloat16"),
        "odd": jax.numpy.ones((5, 3), "int32"),
        "scalar": jax.numpy.ones(()),
    }
    (tmp_path / "a model").mkdir()
    save_file(tree, tmp_path / "a model" / "model.safetensors")
    return tmp_path / "a model"


@pytest.mark.parametrize(("axis", "strategy"), [("fsdp", "fsdp"), ("tp", "tp_inner")])
def test_the_file_of_a_safetensors_model_is_that_of_orbaxs_own_tool(
    model: Path, axis: str, strategy: str
) -> None:
    assert json.loads(_printed(model, f"{axis}=4")) == prepare.build_config(
        epath.Path(model), 4, strategy
    )


def test_a_model_that_cannot_be_read_is_one_line(model: Path) -> None:
    (model / "more.safetensors").write_bytes(b"cut")
    with pytest.raises(UserError, match=r"more\.safetensors is damaged: it has no") as refused:
        _printed(model, "fsdp=4")
    assert len(refused.value.said) == 1


@pytest.mark.slow
def test_what_is_written_is_a_sharding_file_to_load_with(saved: Path, tmp_path: Path) -> None:
    file = tmp_path / "sharding.json"
    file.write_text(_printed(saved, "data=2,fsdp=2,tensor=2"))
    assert len(read_sharding_file(str(file))) == 6
    loaded = load_checkpoint(CheckpointConfig(path=str(saved), sharding_config_path=str(file)))
    assert loaded["even"].sharding.shard_shape((8, 8)) == (4, 4)
    assert digest(loaded) == digest(load_checkpoint(CheckpointConfig(path=str(saved))))


def test_each_array_is_a_line(saved: Path) -> None:
    written = _printed(saved / "state", "fsdp=8")
    assert len(written.splitlines()) == len(json.loads(written)) + 2


@pytest.mark.parametrize("mesh", ["", "fsdp", "fsdp=", "fsdp=0", "fsdp=-1", "=8", "a=2,a=4", "a=x"])
def test_what_is_no_mesh_is_refused(saved: Path, mesh: str) -> None:
    with pytest.raises(UserError, match="--mesh: expected a mesh such as data=16,fsdp=16"):
        _printed(saved, mesh)
