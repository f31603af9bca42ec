"""Existing checkpoints, as people have them, through the commands that take one.

Each loads, or ends in one sentence and the right code. The inputs are those of public reports on
Orbax, Flax and the safetensors format.
"""

import json
import shutil
import struct
import subprocess
import sys
from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as v0
import pytest
import yaml
from orbax.checkpoint import msgpack_utils
from orbax.checkpoint import v1 as ocp

from orbax_bench_core.cli.main import main

ALONE = ("--no-limits", "--no-lock")
W = np.arange(128, dtype=np.float32).reshape(16, 8)
Moments = namedtuple("Moments", "mu nu")  # noqa: PYI024 - what optimizers save

LOADED = {
    "slash in a name": {"decoder/block_0/mlp": {"w": W, "b": W[0]}},
    "random keys": {
        "dense": W,
        "dropout": {"key": jax.random.key(0), "rbg": jax.random.key(1, impl="rbg")},
        "of each": jax.random.split(jax.random.key(0), 4),
    },
    "bool": {"w": W, "finished": False},
    "complex number": {"w": W, "phase": np.complex64(1 + 1j)},
    "numbers of numpy": {"w": W, "a": np.int8(1), "b": np.float16(1), "c": np.uint16(1)},
    "low precision": {
        "bf": jnp.ones((4, 4), jnp.bfloat16),
        "f8": jnp.ones((4, 4), jnp.float8_e4m3fn),
        "i4": jnp.ones((4, 4), jnp.int4),
    },
    "an array alone": W,
    "a number alone": 3,
    "no array": {"step": 1, "name": "x"},
    "only strings": {"name": "x"},
    "empty nodes": {"w": W, "none": None, "dict": {}, "list": [], "tuple": ()},
    "tuples": {"t": (W, W[0]), "nt": Moments(W, W[0])},
    "odd names": {"": W, "a.b": W, "ünïcode key": W, "a:b": W, "/a": W, "a/../b": W},
    "whole numbers as keys": {0: W, 1: W[0]},
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Returns the folder of the checkpoints of LOADED, each called by its name."""
    folder = tmp_path_factory.mktemp("saved")
    for name, tree in LOADED.items():
        tree = jax.tree.map(lambda leaf: jnp.asarray(leaf) if leaf is W else leaf, tree)
        v0.PyTreeCheckpointer().save(folder / name, tree)
    return folder


@pytest.fixture
def said(monkeypatch, capsys):
    """Runs a command in this process; returns its code, output and errors."""
    monkeypatch.delenv("XLA_FLAGS")  # workers have the devices of their mesh

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["orbax-bench", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.mark.parametrize("name", LOADED)
def test_what_orbax_saves_is_looked_at_and_given_a_sharding_file(saved, said, name):
    code, out, _ = said("inspect", saved / name, "--json")
    found = json.loads(out)
    assert (code, found["problems"], found["unloadable"]) == (0, [], [])
    assert all(row["missing"] == 0 for row in found["by_array"])
    code, out, err = said("sharding", saved / name, "--mesh", "fsdp=4")
    assert (code, err) == (0, "")
    arrays = {row["name"] for row in found["by_array"] if row["chunks"]}
    assert arrays >= set(json.loads(out))
    code, _, err = said("plan", saved / name, "--mesh", "fsdp=4")
    lacks_arrays = name in ("a number alone", "no array", "only strings")
    assert code == (2 if lacks_arrays else 0), err


@pytest.mark.slow
def test_what_orbax_saves_is_loaded_and_verified(saved, said, tmp_path):
    sharded = {}
    for name in LOADED:
        _, sharded[name], _ = said("sharding", saved / name, "--mesh", "fsdp=4")
        (tmp_path / f"{name}.json").write_text(sharded[name])
    loads = [
        {
            "generator": "orbax_load",
            "options": {
                "checkpoint_path": str(saved / name),
                "sharding_config_path": str(tmp_path / f"{name}.json"),
            },
        }
        for name in LOADED
    ]
    suite = {
        "suite_name": "load",
        "num_repeats": 1,
        "execution": {"warmups": 0},
        "checkpoint_configs": [{"path": str(saved / name)} for name in LOADED],
        "mesh_config": {"mesh_axes": ["fsdp"], "ici_parallelism": {"fsdp": 4}},
        "benchmarks": [{"generator": "save_restore", "options": {}}],
    }
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite))
    code, out, err = said("run", tmp_path / "suite.yaml", "-o", tmp_path / "run", *ALONE)
    assert code == 0, out + err
    del suite["checkpoint_configs"]
    (tmp_path / "loads.yaml").write_text(yaml.safe_dump(suite | {"benchmarks": loads}))
    code, out, err = said("run", tmp_path / "loads.yaml", "-o", tmp_path / "run2", *ALONE)
    assert code == 0, out + err


def step(folder, **items):
    with v0.CheckpointManager(folder) as manager:
        manager.save(1, args=v0.args.Composite(**items))
    return folder / "1"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Returns steps of a manager, whose copies a test may damage."""
    folder = tmp_path_factory.mktemp("made")
    tree, other = v0.args.PyTreeSave({"w": jnp.asarray(W)}), v0.args.PyTreeSave({"mu": W})
    step(folder / "two", items=tree, train_state=other)
    step(folder / "chosen", params=tree, opt=other)
    step(folder / "json", items=tree, config=v0.args.JsonSave({"a": 1}))
    step(folder / "three", a=tree, b=tree, c=other)
    v0.Checkpointer(v0.JsonCheckpointHandler()).save(folder / "root json" / "1", {"a": 1})
    step(folder / "only json", config=v0.args.JsonSave({"a": 1}))
    ocp.save(folder / "v1" / "1", {"w": jnp.asarray(W)})
    return folder


def cut(path):
    for file in (path / "train_state").rglob("d/*"):
        file.write_bytes(file.read_bytes()[:3])


def change(name, edit):
    def apply(path):
        file = path / name
        file.write_text(edit(file.read_text()))

    return apply


def empty(name):
    def apply(path):
        shutil.rmtree(path / name)
        (path / name).mkdir()

    return apply


def newer(text):
    return json.dumps(json.loads(text) | {"version": 99, "of_later": {}})


WHOLE = [
    ("two", lambda path: None, "its item train_state has arrays of its own"),
    ("two", lambda path: shutil.copytree(path / "items", path / "spare"), "does not name spare"),
    ("json", lambda path: None, "its item config (JsonCheckpointHandler) holds no tree"),
    ("only json", lambda path: None, "its item 'config' (JsonCheckpointHandler) holds no tree"),
    ("root json", lambda path: None, "was written by JsonCheckpointHandler, which saves no tree"),
    ("v1", lambda path: (path / "state/_sharding").unlink(), "no mesh is known"),
    ("v1", change("state/_METADATA", newer), "committed"),
    ("v1", lambda path: (path.parent / "2.orbax-checkpoint-tmp-3").mkdir(), "which last changed"),
]


@pytest.mark.parametrize(("name", "change", "line"), WHOLE, ids=[line for *_, line in WHOLE])
def test_what_is_not_looked_at_or_not_loaded_is_said(made, said, tmp_path, name, change, line):
    path = shutil.copytree(made / name / "1", tmp_path / "run" / "1")
    change(path)
    code, out, _ = said("inspect", path)
    assert (code, line.lower() in out.lower()) == (0, True), out
    assert "delete" not in out


DAMAGED = [
    ("two", cut, "train_state: its arrays cannot be listed"),
    ("two", lambda p: shutil.rmtree(p / "train_state"), "train_state is missing, which"),
    ("json", lambda p: shutil.rmtree(p / "config"), "config is missing, which"),
    ("chosen", lambda p: shutil.rmtree(p / "opt"), "opt is missing, which"),
    ("three", lambda p: shutil.rmtree(p / "c"), "c is missing, which"),
    ("three", empty("c"), "c: _METADATA is missing"),
    ("two", empty("train_state"), "train_state: _METADATA is missing"),
    ("two", empty("items"), "items: _METADATA is missing"),
    (
        "v1",
        change("state/_METADATA", lambda text: text.replace('"value_metadata"', '"x"')),
        "state/_METADATA is damaged: its tree_metadata does not describe",
    ),
    ("v1", lambda p: (p / "state/_METADATA").write_text(""), "state/_METADATA is damaged"),
    ("v1", change("state/_METADATA", lambda text: text[:40]), "state/_METADATA is damaged"),
    ("v1", lambda p: (p / "_CHECKPOINT_METADATA").write_text(""), "_CHECKPOINT_METADATA is dam"),
    ("v1", lambda p: (p / "state/manifest.ocdbt").unlink(), "manifest.ocdbt is missing, though"),
]


@pytest.mark.parametrize(("name", "damage", "line"), DAMAGED, ids=[line for *_, line in DAMAGED])
def test_a_damage_ends_every_command(made, said, tmp_path, name, damage, line):
    path = shutil.copytree(made / name / "1", tmp_path / "1")
    damage(path)
    code, out, _ = said("inspect", path)
    assert code == 1
    wrong = [text for text in out.splitlines() if text.startswith(("✗ NOT WHOLE: ", "- "))]
    assert any(line in text for text in wrong)
    code, _, err = said("sharding", path, "--mesh", "fsdp=4")
    assert (code, line in err) == (2, True)
    code, _, err = said("init", "--checkpoint", path, "--output", tmp_path / "suite.yaml")
    assert (code, line in err) == (2, True)
    code, out, err = said("plan", path, "--mesh", "fsdp=4")
    assert code in (1, 2)  # what will fail, or nothing is left to plan
    assert line in out + err


PLACES = [
    ("two", "holds 1 checkpoint; give one, such as", "two/1"),
    ("chosen/1", "holds the items ['opt', 'params']; give one", "chosen/1/opt"),
    ("", "is not a checkpoint; there is one below it", "two/1"),
    ("v1/1/state/d", "is not a checkpoint: neither it nor", ""),
    ("nothing", "does not exist; give the directory of a checkpoint", ""),
    ("two/1/commit_success.txt", "is a file; give the directory of a checkpoint", ""),
]


@pytest.mark.parametrize(("place", "line", "example"), PLACES)
def test_another_place_is_one_sentence_with_an_example(made, said, place, line, example):
    for command in (["inspect"], ["sharding", "--mesh", "fsdp=4"], ["plan", "--mesh", "fsdp=4"]):
        code, _, err = said(command[0], made / place, *command[1:])
        assert (code, err.count("\n")) == (2, 1)
        assert line in err
        assert str(made / example) in err or not example or place == ""


def test_links_uris_slashes_and_items_name_the_same_checkpoint(made, said, tmp_path):
    (tmp_path / "latest").symlink_to(made / "v1" / "1")
    step_folder = made / "v1" / "1"
    for path in (step_folder, f"{step_folder}/", f"file://{step_folder}", tmp_path / "latest"):
        code, out, _ = said("inspect", path, "--json")
        assert (code, json.loads(out)["item"]) == (0, "state")
    code, out, _ = said("inspect", step_folder / "state", "--json")
    assert (code, json.loads(out)["arrays"]) == (0, 1)
    code, out, _ = said("inspect", made / "only json" / "1" / "config", "--json")
    assert (code, json.loads(out)["problems"]) == (0, [])


def test_a_step_is_found_by_prefix_and_zeros(said, tmp_path):
    options = v0.CheckpointManagerOptions(step_prefix="step", step_format_fixed_length=8)
    with v0.CheckpointManager(tmp_path, options=options) as manager:
        for number in (2, 10):
            manager.save(number, args=v0.args.StandardSave({"w": W}))
    _, _, err = said("inspect", tmp_path)
    assert f"holds 2 checkpoints; give one, such as '{tmp_path}/step_00000010'" in err
    assert said("inspect", tmp_path / "step_00000010")[0] == 0


@pytest.fixture
def in_msgpack(tmp_path):
    """Returns a checkpoint as Orbax 0.5 wrote it with aggregate."""
    folder = tmp_path / "checkpoint_7"
    folder.mkdir()
    leaf = {"value_type": "np.ndarray", "skip_deserialize": True}
    entry = {"key_metadata": [{"key": "w", "key_type": 2}], "value_metadata": leaf}
    (folder / "_METADATA").write_text(json.dumps({"tree_metadata": {"('w',)": entry}}))
    (folder / "checkpoint").write_bytes(msgpack_utils.msgpack_serialize({"w": W}))
    return folder


def converted(err):
    """Does what a message says, and returns where the new checkpoint is."""
    import flax.training.checkpoints

    assert flax.training.checkpoints
    read, _, rest = err.partition("tree = ")[2].partition(", then ")
    save = rest.partition(", and give that")[0]
    names = {
        "orbax": __import__("orbax.checkpoint"),
        "flax": __import__("flax.training.checkpoints"),
    }
    exec(f"tree = {read}\n{save}", names)
    return save.split("'")[1]


def test_values_in_msgpack_are_told_and_converted(in_msgpack, said):
    code, out, _ = said("inspect", in_msgpack)
    assert code == 0
    assert "the values of w are in the file checkpoint (msgpack" in out
    assert "are not looked at" in out
    code, _, err = said("sharding", in_msgpack, "--mesh", "fsdp=4")
    assert code == 2
    assert "is msgpack, which Orbax v1 does not read: convert it" in err
    assert said("sharding", converted(err), "--mesh", "fsdp=4")[0] == 0
    _, _, err = said("inspect", in_msgpack.parent)
    assert "checkpoint_7" in err


def test_a_file_of_flax_is_told_and_converted(said, tmp_path):
    (tmp_path / "checkpoint_100").write_bytes(msgpack_utils.msgpack_serialize({"w": W}))
    for path in (tmp_path, tmp_path / "checkpoint_100"):
        code, _, err = said("inspect", path)
        assert (code, "is a file of msgpack, as flax.training" in err) == (2, True)
    assert said("inspect", converted(err))[0] == 0


def safetensors(folder, index=None, **files):
    folder.mkdir()
    for name, arrays in files.items():
        header, data = {}, b""
        for array, (dtype, content) in arrays.items():
            shape = [len(content) // {"F32": 4, "F16": 2}.get(dtype, 1)]
            offsets = [len(data), len(data) + len(content)]
            header[array] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
            data += content
        text = json.dumps(header).encode()
        file = folder / f"{name}.safetensors"
        file.write_bytes(struct.pack("<Q", len(text)) + text + data)
    if index is not None:
        named = {array: f"{file}.safetensors" for array, file in index.items()}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": named}))
    return folder


F32 = ("F32", b"\0\0\x80\x3f" * 4)
GIT_LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12345\n"
MODELS = {
    "missing shard": ({"a": {"x": F32}}, {"x": "a", "y": "b"}, "b.safetensors is missing, which"),
    "missing array": ({"a": {"x": F32}}, {"x": "a", "y": "a"}, "a.safetensors does not hold 'y'"),
    "other shard": ({"a": {"x": F32}, "b": {"z": F32}}, {"x": "b", "z": "b"}, "hold 'x'"),
    "twice": ({"a": {"x": F32}, "b": {"x": F32}}, None, "both hold 'x', which Orbax refuses"),
}
CONTENTS = {
    "empty": (b"", "it has no safetensors header"),
    "huge": ((2**62).to_bytes(8, "little") + b"{}", "it has no safetensors header"),
    "git lfs": (GIT_LFS, "a pointer of Git LFS"),
    "no json": (struct.pack("<Q", 2) + b"xx", "its header is not JSON"),
    "no array": (struct.pack("<Q", 9) + b'{"x":[1]}', "does not describe 'x' as an array"),
}


@pytest.mark.parametrize("case", [*MODELS, *CONTENTS, "cut", "bad index", "outside"])
def test_a_damaged_model_is_told_by_name(said, tmp_path, case):
    if case in MODELS:
        files, index, line = MODELS[case]
        folder = safetensors(tmp_path / "m", index, **files)
    else:
        folder = safetensors(tmp_path / "m", a={"x": F32})
        content, line = CONTENTS.get(case, (None, ""))
        if content is not None:
            (folder / "a.safetensors").write_bytes(content)
        elif case == "cut":
            whole, line = (folder / "a.safetensors").read_bytes(), "it is cut short"
            (folder / "a.safetensors").write_bytes(whole[:-3])
        else:
            text, line = {
                "bad index": ("{", "model.safetensors.index.json is damaged"),
                "outside": (
                    '{"weight_map": {"x": "../a.safetensors"}}',
                    "outside of its directory",
                ),
            }[case]
            (folder / "model.safetensors.index.json").write_text(text)
    code, out, _ = said("inspect", folder)
    assert (code, line in out) == (1, True), out
    code, _, err = said("sharding", folder, "--mesh", "fsdp=4")
    assert (code, line in err) == (2, True)


def test_a_dtype_that_orbax_lacks_is_no_damage(said, tmp_path):
    folder = safetensors(tmp_path / "m", a={"x": ("F8_E8M0", b"\0" * 4)})
    code, out, _ = said("inspect", folder)
    assert (code, "'x' has the dtype 'F8_E8M0'; Orbax loads BOOL" in out) == (0, True)
    assert said("sharding", folder, "--mesh", "fsdp=4")[0] == 2


@pytest.mark.slow
def test_what_an_index_does_not_name_is_not_loaded(said, tmp_path):
    files = {"a": {"x": F32, "spare": F32}, "consolidated": {"x": F32, "z": F32}}
    folder = safetensors(tmp_path / "m", {"x": "a"}, **files)
    code, out, err = said("sharding", folder, "--mesh", "fsdp=4")
    assert (code, list(json.loads(out))) == (0, ["x"])
    assert "consolidated.safetensors is not named by the index, and is not loaded" in err
    assert "the index does not name spare" in err
    (tmp_path / "sharding.json").write_text(out)
    missing = safetensors(tmp_path / "half", {"x": "a", "y": "b"}, a={"x": F32})
    options = {"checkpoint_path": [str(folder), str(folder / "a.safetensors"), str(missing)]}
    suite = {
        "suite_name": "load",
        "num_repeats": 1,
        "execution": {"warmups": 0},
        "mesh_config": {"mesh_axes": ["fsdp"], "ici_parallelism": {"fsdp": 4}},
        "benchmarks": [{"generator": "safetensors_load", "options": options}],
    }
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite))
    code, out, _ = said("run", tmp_path / "suite.yaml", "-o", tmp_path / "run", *ALONE)
    assert code == 1
    assert "b.safetensors is missing, which model.safetensors.index.json names" in out
    records = [json.loads(file.read_text()) for file in (tmp_path / "run").rglob("host_0.json")]
    assert sorted(record["status"] for record in records) == ["failed", "passed", "passed"]


@pytest.mark.parametrize("command", ["inspect", "expand --help"])
def test_a_closed_pipe_gives_no_code_of_a_failure(saved, command):
    words = {"inspect": [saved / "bool"]}
    line = [sys.executable, "-m", "orbax_bench_core.cli", *command.split(), *words.get(command, [])]
    started = subprocess.Popen(list(map(str, line)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    started.stdout.close()
    _, err = started.communicate(timeout=570)
    assert started.returncode in (0, 141)
    assert err == b""


def test_a_mesh_that_cuts_nothing_is_said_first(said):
    code, out, _ = said("plan", "llama-8b", "--mesh", "fsdp=7")
    assert code == 0
    assert "? NOTHING IS SHARDED: a save of llama-8b from fsdp=7 writes at most " in out
    assert "No axis of fsdp=7 is in the partition of an array" in out
    assert "NOTHING IS SHARDED" not in said("plan", "llama-8b", "--mesh", "fsdp=8")[1]
