import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from etils import epath
from orbax.checkpoint import v1 as ocp
from orbax.checkpoint._src.testing.benchmarks.orbax_load.sharding import generate_from_metadata
from orbax.checkpoint._src.testing.benchmarks.safetensors import prepare

from orbax_bench_core.benchmarks.support.safetensors import write_arrays
from orbax_bench_core.config import CheckpointConfig
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.state import digest, load_checkpoint, read_sharding_file
from orbax_bench_core.steps import sharding


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


def _spec(shape: tuple[int, ...], **mesh: int) -> Any:
    planned = sharding.plan_shardings({"w": (shape, "float32")}, mesh)
    return planned["w"]["sharding"]["spec"]


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
    mesh: dict[str, int], spec: list[Any]
) -> None:
    assert _spec((8, 8), **mesh) == spec


def test_arrays_of_one_dimension_are_replicated() -> None:
    assert (_spec((8,), fsdp=8), _spec((), fsdp=8)) == ([None], [])


@pytest.mark.parametrize(
    ("axis", "strategy"), [("fsdp", "fsdp"), ("tp", "tp_inner")], ids=["fsdp", "tp"]
)
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_a_mesh_of_one_axis_gives_what_orbaxs_own_tool_gives(
    saved: Path, axis: str, strategy: str, size: int
) -> None:
    ours = sharding.plan_shardings(sharding.arrays_in(str(saved)), {axis: size})
    assert ours == generate_from_metadata.build_config(str(saved), size, strategy)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    tree = {
        "even": jax.numpy.ones((16, 8), "bfloat16"),
        "odd": jax.numpy.ones((5, 3), "int32"),
        "scalar": jax.numpy.ones(()),
    }
    write_arrays(epath.Path(tmp_path) / "a model", tree)
    return tmp_path / "a model"


@pytest.mark.parametrize(("axis", "strategy"), [("fsdp", "fsdp"), ("tp", "tp_inner")])
def test_the_file_of_a_safetensors_model_is_that_of_orbaxs_own_tool(
    model: Path, capsys: pytest.CaptureFixture[str], axis: str, strategy: str
) -> None:
    assert sharding.main([str(model), f"{axis}=4"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written == prepare.build_config(epath.Path(model), 4, strategy)


def test_a_model_that_cannot_be_read_is_one_line(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (model / "more.safetensors").write_bytes(b"cut")
    assert sharding.main([str(model), "fsdp=4"]) == Exit.INVALID
    said = capsys.readouterr().err
    assert "more.safetensors" in said
    assert said.count("\n") == 1


@pytest.mark.slow
def test_what_is_written_is_a_sharding_file_to_load_with(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sharding.main([str(saved), "data=2,fsdp=2,tensor=2"]) == 0
    file = tmp_path / "sharding.json"
    file.write_text(capsys.readouterr().out)
    assert len(read_sharding_file(str(file))) == 6
    loaded = load_checkpoint(CheckpointConfig(path=str(saved), sharding_config_path=str(file)))
    assert loaded["even"].sharding.shard_shape((8, 8)) == (4, 4)
    assert digest(loaded) == digest(load_checkpoint(CheckpointConfig(path=str(saved))))


def test_each_array_is_a_line(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sharding.main([str(saved / "state"), "fsdp=8"])
    written = capsys.readouterr().out
    assert len(written.splitlines()) == len(json.loads(written)) + 2


@pytest.mark.parametrize("mesh", ["", "fsdp", "fsdp=", "fsdp=0", "fsdp=-1", "=8", "a=2,a=4", "a=x"])
def test_what_is_no_mesh_is_refused(
    saved: Path, capsys: pytest.CaptureFixture[str], mesh: str
) -> None:
    assert sharding.main([str(saved), mesh]) == Exit.INVALID
    assert "--mesh: expected a mesh such as data=16,fsdp=16" in capsys.readouterr().err


def test_a_folder_that_is_no_checkpoint_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sharding.main([str(tmp_path), "fsdp=8"]) == Exit.INVALID
    assert "is not an Orbax checkpoint: neither it nor" in capsys.readouterr().err
