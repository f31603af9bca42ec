"""Each damage of a checkpoint is one line, and never a traceback."""

import os
import shutil

import pytest

from orbax_bench_core.inspection import inspect_checkpoint


def data_file(path):
    """Returns the file with the values of an OCDBT database."""
    return max((path / "state/ocdbt.process_0/d").iterdir(), key=lambda file: file.stat().st_size)


def remove(name):
    return lambda path: (path / name).unlink()


def write(name, text):
    return lambda path: (path / name).write_text(text)


def root_node(path):
    (found,) = (path / "state/d").iterdir()
    found.unlink()


def cut(path):
    file = data_file(path)
    file.write_bytes(file.read_bytes()[:1000])


def file_for_a_folder(path):
    shutil.rmtree(path / "state")
    (path / "state").write_text("")


def pipe(name):
    def make(path):
        (path / name).unlink()
        os.mkfifo(path / name)

    return make


def pipe_of_data(path):
    file = data_file(path)
    file.unlink()
    os.mkfifo(file)


def sparse(path):
    with (path / "state/manifest.ocdbt").open("wb") as file:
        file.truncate(2**40)


DAMAGE = [
    ("ocdbt", sparse, "manifest.ocdbt is larger than"),
    ("ocdbt", pipe_of_data, "its arrays cannot be listed: ocdbt.process_0/d/"),
    ("ocdbt", pipe("state/manifest.ocdbt"), "its arrays cannot be listed: manifest.ocdbt is no"),
    ("zarr2", pipe("state/params.b/.zarray"), ".zarray of params.b is damaged: "),
    ("zarr2", write("state/params.b/.zarray", "[" * 100_000), "brackets too deep in each other"),
    ("ocdbt", file_for_a_folder, "state/_METADATA is missing"),
    ("ocdbt", remove("_CHECKPOINT_METADATA"), "_CHECKPOINT_METADATA is missing"),
    ("ocdbt", write("_CHECKPOINT_METADATA", "{"), "_CHECKPOINT_METADATA is damaged: Expecting"),
    ("ocdbt", remove("state/_METADATA"), "state/_METADATA is missing"),
    ("ocdbt", write("state/_METADATA", "[]"), "state/_METADATA is damaged: it holds list"),
    ("ocdbt", write("state/_METADATA", "{}"), "its tree_metadata does not describe a tree"),
    (
        "ocdbt",
        write("state/_METADATA", '{"tree_metadata": 5}'),
        "_METADATA is damaged: its tree_metadata does not describe a tree",
    ),
    ("ocdbt", remove("state/_strings.json"), "state/_strings.json is missing"),
    ("ocdbt", write("state/_strings.json", "{"), "state/_strings.json is damaged: Expecting"),
    ("zarr2", write("state/_strings.json", "{}"), "state/_strings.json does not hold name"),
    ("ocdbt", write("state/_sharding", "x"), "state/_sharding is damaged"),
    (
        "ocdbt",
        write("state/array_metadatas/process_0", '{"array_metadatas": [{}]}'),
        "state/array_metadatas/process_0 is damaged: it does not describe arrays",
    ),
    (
        "ocdbt",
        remove("state/manifest.ocdbt"),
        "manifest.ocdbt is missing, though ocdbt.process_0 is there",
    ),
    ("ocdbt", write("state/manifest.ocdbt", "none"), "its arrays cannot be listed"),
    ("ocdbt", root_node, "its arrays cannot be listed"),
    ("ocdbt", lambda path: data_file(path).unlink(), "is missing, with"),
    ("ocdbt", cut, "is cut short: 1000 of"),
    ("folders", remove("state/params.w/c/1/0"), "1 of 4 chunks of params.w are missing"),
    ("folders", remove("state/params.w/zarr.json"), "no Zarr metadata of params.w"),
    ("folders", write("state/params.w/zarr.json", "{}"), "zarr.json of params.w is damaged"),
    ("zarr2", remove("state/params.w/1.0"), "1 of 4 chunks of params.w are missing"),
    ("zarr2", write("state/params.b/.zarray", "{"), ".zarray of params.b is damaged"),
    (
        "folders",
        lambda path: shutil.rmtree(path / "state/params.b"),
        "no Zarr metadata of params.b",
    ),
]


@pytest.mark.parametrize(("name", "damage", "line"), DAMAGE, ids=[line for *_, line in DAMAGE])
def test_a_damage_is_one_line(copied, name, damage, line):
    path = copied(name)
    damage(path)
    (problem,) = inspect_checkpoint(str(path)).problems
    assert line in problem
    assert "\n" not in problem


def test_a_save_that_has_not_finished_is_told(copied):
    path = copied("folders")
    path = path.rename(path.parent / "5.orbax-checkpoint-tmp")
    found = inspect_checkpoint(str(path))
    assert found.stored.is_committed is False
    assert found.problems == ("its save has not finished: its name has .orbax-checkpoint-tmp",)


def test_what_lies_behind_a_link_is_there(copied, tmp_path):
    path = copied("folders")
    for name in ("state/params.w", "state"):
        moved = (path / name).rename(tmp_path / name.replace("/", "_"))
        (path / name).symlink_to(moved)
    (path / "state" / "params.b" / "around").symlink_to(path)
    assert not inspect_checkpoint(str(path)).problems


def test_a_save_that_ended_before_it_wrote_anything_has_not_finished(tmp_path):
    (path := tmp_path / "5.orbax-checkpoint-tmp").mkdir()
    unfinished = "its save has not finished: its name has .orbax-checkpoint-tmp"
    lines = (unfinished, "_METADATA is missing")
    assert inspect_checkpoint(str(path)).problems == lines
    (path / "_CHECKPOINT_METADATA").write_text("{}")
    assert inspect_checkpoint(str(path)).problems == lines


def test_a_marker_that_is_gone_leaves_the_time_of_the_commit(copied):
    path = copied("folders")
    (path / "commit_success.txt").unlink()
    found = inspect_checkpoint(str(path))
    assert found.stored.is_committed
    assert not found.problems
    (path / "_CHECKPOINT_METADATA").write_text("{}")
    assert inspect_checkpoint(str(path)).stored.is_committed is None


def test_an_empty_item_is_a_damaged_checkpoint(copied):
    path = copied("ocdbt")
    shutil.rmtree(path / "state")
    (path / "state").mkdir()
    assert "state/_METADATA is missing" in inspect_checkpoint(str(path)).problems
