"""Each axis of the blocks of a suite, by what the process of a point has left of two values."""

import json
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from etils import epath

from orbax_bench_core.inventory import read_saved_trees
from orbax_bench_core.state import orbax_api
from orbax_bench_core.sweep import BUILTINS, sweepable_axes
from tests.execute.test_swept_surroundings import EVIDENCE
from website.axes import BLOCKS

ARRAY = {"dtype": "float32", "shape": [8, 4]}
SPEC = {"spec": {"w": ARRAY}}
MODELS = """
import jax.numpy as jnp
from flax import nnx


class Small(nnx.Module):
    def __init__(self, rngs):
        self.kernel = nnx.Param(jnp.zeros((4, 4)))


class Large(nnx.Module):
    def __init__(self, rngs):
        self.kernel = nnx.Param(jnp.zeros((8, 4)))
"""


def arrays(record, folder):
    """Shapes, dtypes and bytes of a chunk of the arrays that a repeat left, by name."""
    trees = read_saved_trees(epath.Path(folder) / "repeat_0")
    return {
        array.name: (array.zarr.shape, array.zarr.dtype, array.zarr.chunk_bytes)
        for tree in trees
        for array in tree.arrays
        if array.zarr is not None
    }


def shapes(record, folder):
    return [shape for shape, _, _ in arrays(record, folder).values()]


def size(record, folder):
    return record["state"]["num_bytes"]


def layout(record, folder):
    """Axes and shape of the mesh over which the array lay that was saved."""
    (file,) = (Path(folder) / "repeat_0").rglob("_sharding")
    (text,) = json.loads(file.read_text()).values()
    found = json.loads(text)
    return found["axis_names"], found["shape"]


def checkpoints(folder):
    """Two checkpoints for each key, how they show, and what shows of each."""
    preset = {"model": "gpt2", "scale": 0.02, "random_seed": 3}
    mesh = {"shape": [2], "axes": ["d"]}
    for name, spec in (("split", ["d"]), ("whole", [])):
        entry = {**ARRAY, "sharding": {"mesh": mesh, "spec": spec}}
        (folder / name).write_text(json.dumps({"w": entry}))
    for rows in (8, 6):
        orbax_api.save(epath.Path(folder) / f"of_{rows}", {"w": np.zeros((rows, 4), np.float32)})
    (folder / "models_of_test.py").write_text(MODELS)
    of_8 = {"path": str(folder / "of_8")}
    return {
        "spec": (
            arrays,
            [
                (SPEC, lambda found: set(found) == {"w"}),
                ({"spec": {"v": ARRAY}}, lambda found: set(found) == {"v"}),
            ],
        ),
        "random_seed": (
            lambda record, folder: json.dumps(record["state"]["digest"]),
            [({**SPEC, "random_seed": seed}, bool) for seed in (1, 2)],
        ),
        "path": (
            shapes,
            [
                (of_8, lambda found: found == [(8, 4)]),
                ({"path": str(folder / "of_6")}, lambda found: found == [(6, 4)]),
            ],
        ),
        "sharding_config_path": (
            arrays,
            [
                (
                    {**of_8, "sharding_config_path": str(folder / name)},
                    lambda found, size=size: found["w"][2] == size,
                )
                for name, size in (("split", 64), ("whole", 128))
            ],
        ),
        "model": (
            lambda record, folder: sorted(arrays(record, folder)),
            [({"model": name, "scale": 0.01}, bool) for name in ("gpt2", "llama-8b")],
        ),
        "scale": (
            lambda record, folder: str(shapes(record, folder)),
            [({"model": "gpt2", "scale": scale}, bool) for scale in (0.02, 0.2)],
        ),
        "optimizer": (
            size,
            [({**preset, "optimizer": name}, bool) for name in ("none", "adamw")],
        ),
        "dtypes": (
            lambda record, folder: str({one[1] for one in arrays(record, folder).values()}),
            [
                (
                    {**preset, "dtypes": {"params": dtype}},
                    lambda found, dtype=dtype: dtype in found,
                )
                for dtype in ("bfloat16", "float16")
            ],
        ),
        "layers": (
            lambda record, folder: len(arrays(record, folder)),
            [
                ({"model": "llama-8b", "scale": 0.02, "layers": layers}, bool)
                for layers in ("stacked", "unstacked")
            ],
        ),
        "nnx": (
            shapes,
            [
                (
                    {"nnx": f"models_of_test:{name}"},
                    lambda found, rows=rows: (rows, 4) in found,
                )
                for name, rows in (("Small", 4), ("Large", 8))
            ],
        ),
    }


MESHES = {
    "mesh_axes": [
        ({"mesh_axes": ["a", "b"], "ici_parallelism": {"a": 2}}, (["a", "b"], [2, 1])),
        ({"mesh_axes": ["b", "a"], "ici_parallelism": {"a": 2}}, (["b", "a"], [1, 2])),
    ],
    "ici_parallelism": [
        ({"mesh_axes": ["a", "b"], "ici_parallelism": {"b": 2}}, (["a", "b"], [1, 2])),
        ({"mesh_axes": ["a", "b"], "ici_parallelism": {"b": 4}}, (["a", "b"], [1, 4])),
    ],
    "dcn_parallelism": [
        ({"mesh_axes": ["a", "b"], "dcn_parallelism": {"a": size}}, (["a", "b"], [size, 1]))
        for size in (2, 4)
    ],
}


def suite(**blocks):
    return yaml.safe_dump(
        {
            "suite_name": "blocks",
            "execution": {"retries": 0, "warmups": 0, "keep_data": True},
            "checkpoint_configs": [SPEC],
            "mesh_configs": [{"mesh_axes": ["d"], "ici_parallelism": {"d": 2}}],
            "benchmarks": [{"generator": "save_restore", "options": {}}],
            **blocks,
        }
    )


def ran(run):
    """Runs a suite; returns each record with the folder of its checkpoint data."""
    process = run.start()
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    found = []
    for record in run.records().values():
        place = Path(record["point"]["storage"] or run.directory)
        (folder,) = place.rglob(f"*_{record['point_id']}")
        found.append((record, folder))
    return found


def test_no_block_is_forgotten(tmp_path):
    axes = {str(axis) for axis in sweepable_axes() if axis.place not in BUILTINS}
    assert set(BLOCKS) == axes
    shown = {f"execution.{name}" for name in EVIDENCE} | {f"mesh_configs.{name}" for name in MESHES}
    shown |= {f"checkpoint_configs.{name}" for name in checkpoints(tmp_path)}
    shown |= {"storage", "benchmarks.generator", "environments.interpreter"}
    shown |= {axis for axis in axes if axis.startswith("arms.")}
    # Two releases need an installation: tests/environments/test_make.py.
    shown |= {"environments.requirements"}
    assert shown == {axis for axis, by in BLOCKS.items() if not by.startswith("not proved")}


@pytest.mark.nightly
def test_both_values_of_every_key_of_a_checkpoint_arrive(suite_run, tmp_path):
    wanted = checkpoints(tmp_path)
    given = [
        {**config, "name": f"{key} {index}"}
        for key, (_, values) in wanted.items()
        for index, (config, _) in enumerate(values)
    ]
    found = {
        record["point"]["checkpoint"]["name"]: (record, folder)
        for record, folder in ran(suite_run(suite(checkpoint_configs=given)))
    }
    for key, (shown, values) in wanted.items():
        first, second = (shown(*found[f"{key} {index}"]) for index in range(2))
        assert first != second, key
        for show, (_, holds) in zip((first, second), values, strict=True):
            assert holds(show), (key, show)


@pytest.mark.nightly
def test_both_values_of_every_key_of_a_mesh_arrive(suite_run):
    given = [
        {**config, "name": f"{key} {index}"}
        for key, values in MESHES.items()
        for index, (config, _) in enumerate(values)
    ]
    seen = set()
    for record, folder in ran(suite_run(suite(mesh_configs=given))):
        key, index = record["point"]["mesh"]["name"].split()
        assert layout(record, folder) == MESHES[key][int(index)][1]
        seen.add((key, index))
    assert seen == {(key, index) for key in MESHES for index in "01"}


@pytest.mark.nightly
def test_both_places_and_both_environments_arrive(suite_run, tmp_path):
    places = [str(tmp_path / name) for name in ("one", "two")]
    run = suite_run(suite(storage=places, environments=environments(tmp_path)))
    seen = set()
    for record, folder in ran(run):
        point, name = record["point"], record["point"]["environment"]["name"]
        assert (folder / "repeat_0" / "ckpt").is_dir()
        assert folder.is_relative_to(point["storage"])
        assert record["provenance"]["environment"]["LIBTPU_INIT_ARGS"] == name
        seen |= {point["storage"], name}
    assert seen == {*places, "first", "second"}


def environments(folder):
    """Two environments whose interpreters say in a variable which one they are."""
    found = []
    for name in ("first", "second"):
        script = folder / name
        script.write_text(f'#!/bin/sh\nLIBTPU_INIT_ARGS={name} exec "{sys.executable}" "$@"\n')
        script.chmod(0o755)
        found.append({"name": name, "interpreter": str(script)})
    return found


@pytest.mark.nightly
def test_what_arms_differ_in_arrives(suite_run, tmp_path):
    """A comparison of all that arms may differ in at once; the first records of both suffice."""
    places = {"baseline": str(tmp_path / "one"), "candidate": str(tmp_path / "two")}
    arms = {
        "baseline": {"options": {"use_ocdbt": True}, "environment": "first"},
        "candidate": {
            "options": {"use_ocdbt": False},
            "environment": "second",
            "generator": "staged_save",
            "processes": 2,
            "mesh_config": {"mesh_axes": ["d"], "ici_parallelism": {"d": 4}},
        },
    }
    for arm, place in places.items():
        arms[arm]["storage"] = place
    run = suite_run(suite(arms=arms, environments=environments(tmp_path)))
    process = run.start(command="ab")
    deadline, found = time.monotonic() + 300, {}
    while set(found) != set(arms) and time.monotonic() < deadline and process.poll() is None:
        found = {record["arm"]: record for record in run.records().values()}
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert set(found) == set(arms), output
    shown = {}
    for arm, record in found.items():
        assert record["status"] == "passed", record["error"]
        (ocdbt,) = (effect for effect in record["effects"] if effect["option"] == "use_ocdbt")
        shown[arm] = (
            ocdbt["proof"],
            record["provenance"]["environment"]["LIBTPU_INIT_ARGS"],
            "save_dtype" in {effect["option"] for effect in record["effects"]},
            record["provenance"]["devices"]["processes"],
            record["provenance"]["devices"]["count"],
            any(Path(places[arm]).rglob("*_*")),
        )
    assert shown == {
        "baseline": ("the arrays lie in one database, manifest.ocdbt", "first", False, 1, 2, True),
        "candidate": ("there is no manifest.ocdbt", "second", True, 2, 4, True),
    }
