from __future__ import annotations

from pathlib import Path

import pytest

from orbax_bench_core.state.loading import locate
from orbax_bench_core.state.tree import StateError


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


def test_an_empty_directory_is_not_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="is not an Orbax checkpoint"):
        locate(str(tmp_path))


def test_a_missing_path_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(
        StateError, match="does not exist; give the directory of an Orbax checkpoint"
    ):
        locate(str(tmp_path / "nothing"))


def test_a_file_is_not_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match="is a file; give the directory of an Orbax checkpoint"):
        locate(str(tmp_path / "file"))


def test_a_model_in_safetensors_names_the_benchmark_that_loads_it(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(StateError, match="which the benchmark safetensors_load loads"):
        locate(str(tmp_path))


def test_what_a_save_left_unfinished_is_no_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "step.orbax-checkpoint-tmp"
    _checkpoint(folder, "state")
    with pytest.raises(StateError, match="has not finished"):
        locate(str(folder))
