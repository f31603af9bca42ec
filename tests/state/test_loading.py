"""Existing checkpoints: found, loaded, and saved to be loaded later."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as v0
import pytest
from jax.sharding import Mesh
from orbax.checkpoint import v1 as ocp

from orbax_bench_core.config import ArraySpec, CheckpointConfig
from orbax_bench_core.state.digests import digest
from orbax_bench_core.state.fixtures import save_fixture
from orbax_bench_core.state.loading import load_checkpoint, locate
from orbax_bench_core.state.synthetic import generate
from orbax_bench_core.state.tree import StateError

Tree = dict[str, Any]


@pytest.fixture(scope="module")
def tree(mesh8: Mesh) -> Tree:
    spec: dict[str, Any] = {
        "params": {"w": ArraySpec(dtype="bfloat16", shape=(16, 6), sharding=("x",))},
        "step": "int",
        "name": "str",
        "count": ArraySpec(dtype="int32", shape=()),
    }
    made: Tree = generate(spec, seed=0, mesh=mesh8)
    return made | {"layers": [made["params"]["w"], np.arange(3, dtype=np.int16)], "empty": {}}


def _save_v1(path: Path, tree: Tree, *, ocdbt: bool, zarr3: bool) -> None:
    context = ocp.Context()
    context.array.saving.use_ocdbt = ocdbt
    context.array.saving.use_zarr3 = zarr3
    with context:
        ocp.save(path, tree)


def _save_v0(path: Path, tree: Tree, *, ocdbt: bool, zarr3: bool) -> None:
    handler = v0.PyTreeCheckpointHandler(use_ocdbt=ocdbt, use_zarr3=zarr3)
    with v0.Checkpointer(handler) as checkpointer:
        checkpointer.save(path, args=v0.args.PyTreeSave(tree))


def _load(path: Path, **options: Any) -> Tree:
    loaded: Tree = load_checkpoint(CheckpointConfig(path=str(path), **options))
    return loaded


@pytest.fixture(scope="module")
def saved(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "checkpoint"
    ocp.save(path, tree)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("save", [_save_v0, _save_v1])
@pytest.mark.parametrize(
    ("ocdbt", "zarr3"), [(True, True), (True, False), (False, True), (False, False)]
)
def test_every_format_loads(
    tmp_path: Path, tree: Tree, save: Callable[..., None], ocdbt: bool, zarr3: bool
) -> None:
    save(tmp_path / "checkpoint", tree, ocdbt=ocdbt, zarr3=zarr3)
    assert digest(_load(tmp_path / "checkpoint")) == digest(tree)


@pytest.mark.slow
@pytest.mark.parametrize("item", [None, "items"])
def test_a_step_of_a_checkpoint_manager_loads(tmp_path: Path, tree: Tree, item: str | None) -> None:
    with v0.CheckpointManager(tmp_path / "run", item_names=("items", "extra")) as manager:
        items = v0.args.Composite(items=v0.args.PyTreeSave(tree), extra=v0.args.JsonSave({"a": 1}))
        manager.save(4, args=items)
        manager.wait_until_finished()
    step = tmp_path / "run" / "4"
    assert digest(_load(step if item is None else step / item)) == digest(tree)


def test_the_tree_keeps_its_form(saved: Path, tree: Tree) -> None:
    loaded = _load(saved)
    assert str(jax.tree.structure(loaded)) == str(jax.tree.structure(tree))
    assert (loaded["step"], loaded["name"], loaded["empty"]) == (1234, "synthetic", {})


@pytest.mark.slow
def test_the_sharding_file_decides_layout_and_dtype(
    saved: Path, tree: Tree, tmp_path: Path
) -> None:
    def entry(shape: list[int], dtype: str, spec: list[str | None]) -> Tree:
        mesh = {"shape": [2, 4], "axes": ["a", "b"]}
        return {"shape": shape, "dtype": dtype, "sharding": {"mesh": mesh, "spec": spec}}

    file = tmp_path / "sharding.json"
    file.write_text(
        json.dumps(
            {
                "params.w": entry([16, 6], "float32", ["b", "a"]),
                "layers.0": entry([16, 6], "bfloat16", [None, "a"]),
                "layers.1": entry([3], "int16", []),
                "count": entry([], "int32", []),
            }
        )
    )
    loaded = _load(saved, sharding_config_path=str(file))
    weights = loaded["params"]["w"]
    assert weights.sharding.shard_shape((16, 6)) == (4, 3)
    np.testing.assert_array_equal(
        np.asarray(weights), np.asarray(tree["params"]["w"]).astype(np.float32)
    )
    assert digest(loaded)["layers.0"] == digest(tree)["layers.0"]


def test_a_sharding_file_without_a_leaf_names_it(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "sharding.json").write_text("{}")
    with pytest.raises(StateError, match="no entry for 4 of 4 arrays of the checkpoint: count, "):
        _load(saved, sharding_config_path=str(tmp_path / "sharding.json"))


def test_64_bit_arrays_are_not_narrowed_silently(tmp_path: Path) -> None:
    ocp.save(tmp_path / "wide", {"w": jax.numpy.ones(4, "float64")})
    with jax.enable_x64(False), pytest.raises(StateError, match="leaf 'w': float64 needs"):
        _load(tmp_path / "wide")


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    ocp.save(tmp_path / "checkpoint", {"w": jax.numpy.ones(4)})
    (tmp_path / "checkpoint" / "state" / "_METADATA").write_text("{")
    with pytest.raises(StateError, match="state/_METADATA is damaged"):
        _load(tmp_path / "checkpoint")


def test_a_path_is_needed() -> None:
    with pytest.raises(StateError, match="has no `path`"):
        load_checkpoint(CheckpointConfig())


def test_a_checkpoint_whose_metadata_name_another_place_is_not_loaded(tmp_path: Path) -> None:
    _save_v1(tmp_path / "c", {"w": np.arange(4.0)}, ocdbt=False, zarr3=False)
    (file,) = (tmp_path / "c").rglob("_METADATA")
    (tmp_path / "elsewhere").mkdir()
    shutil.copytree(file.parent / "w", tmp_path / "elsewhere" / "w")
    outside = str(tmp_path / "elsewhere" / "w")
    text = file.read_text().replace("('w',)", f"('{outside}',)")
    file.write_text(text.replace('"key": "w"', f'"key": "{outside}"'))
    with pytest.raises(StateError, match=r"no Zarr metadata of .*elsewhere/w"):
        _load(tmp_path / "c")


def _checkpoint(root: Path, *items: str) -> Path:
    root.mkdir(parents=True)
    (root / "_CHECKPOINT_METADATA").touch()
    for item in items:
        (root / item).mkdir()
        (root / item / "_METADATA").touch()
    return root


def _found(path: Path) -> tuple[str, str | None]:
    location = locate(str(path))
    return str(location.root), location.item


def test_the_state_goes_before_other_items(tmp_path: Path) -> None:
    root = _checkpoint(tmp_path / "c", "aux", "state")
    assert _found(root) == (str(root), "state")


def test_an_item_is_found_through_its_root(tmp_path: Path) -> None:
    root = _checkpoint(tmp_path / "c", "aux", "state")
    assert _found(root / "aux") == (str(root), "aux")


def test_arrays_in_the_root_are_no_item(tmp_path: Path) -> None:
    root = _checkpoint(tmp_path / "c")
    (root / "_METADATA").touch()
    assert _found(root) == (str(root), None)


def test_several_items_without_a_usual_name_are_a_choice(tmp_path: Path) -> None:
    root = _checkpoint(tmp_path / "c", "opt", "params")
    with pytest.raises(StateError, match=r"holds the items \['opt', 'params'\]; give .*/c/opt'"):
        locate(str(root))


def test_a_directory_of_steps_names_the_last(tmp_path: Path) -> None:
    _checkpoint(tmp_path / "run" / "9", "items")
    _checkpoint(tmp_path / "run" / "10", "items")
    with pytest.raises(StateError, match=r"holds 2 checkpoints; give .*/run/10'"):
        locate(str(tmp_path / "run"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("empty/", "is not a checkpoint: neither it nor"),
        ("nothing", "does not exist; give the directory of a checkpoint"),
        ("file", "is a file; give the directory of a checkpoint"),
        ("model/model.safetensors", "which the benchmark safetensors_load loads"),
        ("step.orbax-checkpoint-tmp/_CHECKPOINT_METADATA", "has not finished"),
    ],
)
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, name: str, message: str) -> None:
    folder, slash, file = name.partition("/")
    if slash:
        (tmp_path / folder).mkdir()
    if file or name == "file":
        (tmp_path / name).touch()
    with pytest.raises(StateError, match=message):
        locate(str(tmp_path / folder))


@pytest.mark.slow
def test_a_fixture_loads_as_it_was(tmp_path: Path) -> None:
    tree = {"w": jnp.arange(8), "name": "abc", "step": 3}
    save_fixture(tree, str(tmp_path / "fixture"))
    loaded = load_checkpoint(CheckpointConfig(path=str(tmp_path / "fixture")))
    assert digest(loaded) == digest(tree)


@pytest.mark.slow
def test_an_earlier_fixture_is_replaced(tmp_path: Path) -> None:
    save_fixture({"old": jnp.arange(8)}, str(tmp_path / "fixture"))
    save_fixture({"new": jnp.arange(8)}, str(tmp_path / "fixture"))
    assert list(load_checkpoint(CheckpointConfig(path=str(tmp_path / "fixture")))) == ["new"]


def test_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(StateError, match="is not a checkpoint, so it is not overwritten"):
        save_fixture({"w": jnp.arange(8)}, str(tmp_path))
    assert (tmp_path / "thesis.txt").exists()
