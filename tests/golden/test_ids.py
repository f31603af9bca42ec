"""Ids and names of points and pairs, by which users find and compare their results."""

import importlib.util
from pathlib import Path

import pytest

from tests.golden import made, support

EXAMPLES = Path(__file__).parents[2] / "examples"
ARMS = {"as_they_are": (), "in_two_arms": ("arms={}",)}

CHECKPOINT = "checkpoint_config: {spec: {params: {dtype: bfloat16, shape: [64, 64]}}}"
EVERY_KEY = """\
suite_name: every key that makes a point another
num_repeats: 2
checkpoint_configs:
- {spec: {params: {dtype: bfloat16, shape: [64, 64], sharding: [fsdp]}}, name: named}
- {spec: {b: {dtype: int8, shape: []}, a: {dtype: int8, shape: [8]}}, random_seed: 3}
- {path: /data/a checkpoint}
- {path: gs://bucket/checkpoint, load_with_colocated_python: true}
- {model: gpt2, scale: 0.01}
mesh_configs:
- {mesh_axes: [fsdp], ici_parallelism: {fsdp: 2}}
- {mesh_axes: [fsdp, tp], ici_parallelism: {fsdp: 2, tp: 2}, dcn_parallelism: {fsdp: 2, tp: 1}}
execution: {processes: [1, 2], cache: [warm, cold], host_memory: fresh, durable: true, x64: false}
storage: [/data/a, gs://bucket/b]
environments:
- {name: old, requirements: ["orbax-checkpoint==0.11.20"]}
- {name: new, requirements: ["orbax-checkpoint", "jax==0.10.2"]}
benchmarks:
- generator: save_restore
  options: {use_ocdbt: true, chunk_byte_size: 1048576}
"""
OVERRIDES = {
    "nothing": "{}",
    "an option": "{candidate: {options: {use_ocdbt: false}}}",
    "both an option": "{baseline: {options: {use_zarr3: true}}, candidate: {options: {use_zarr3: "
    "false}}}",
    "a generator": "{candidate: {generator: pytree_checkpoint}}",
    "processes": "{candidate: {processes: 2}}",
    "storage": "{baseline: {storage: gs://bucket/a}}",
    "a mesh": "{candidate: {mesh_config: {mesh_axes: [data], ici_parallelism: {data: 4}}}}",
    "an environment": "{baseline: {environment: old}}",
}


def published():
    """The suites of the installed release of Orbax, by their path in its framework."""
    (folder,) = importlib.util.find_spec(
        "orbax.checkpoint._src.testing.benchmarks"
    ).submodule_search_locations
    files = sorted(file for file in Path(folder).rglob("*.yaml") if "configs" in file.parts)
    return {file.relative_to(folder).as_posix(): file for file in files}


def examples():
    files = sorted(EXAMPLES.rglob("*.yaml"))
    suites = [file for file in files if "\nbenchmarks:" in file.read_text()]
    return {file.relative_to(EXAMPLES).as_posix(): file for file in suites}


@pytest.fixture(autouse=True)
def own_package(monkeypatch, tmp_path):
    """A benchmark of an example lies in a package that is not installed."""
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES / "own_package" / "src"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("arms", ARMS)
@pytest.mark.parametrize("suites", [published, examples], ids=lambda suites: suites.__name__)
def test_points(golden, suites, arms):
    found = suites()
    texts = [f"# {name}\n{support.swept(found[name], *ARMS[arms])}" for name in found]
    golden(f"ids/{suites.__name__}_{arms}.txt", "\n".join(texts))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), [("every_key", EVERY_KEY), ("skipped", made.SKIPPING)])
def test_what_makes_a_point_another_and_what_is_skipped(golden, tmp_path, name, text):
    file = tmp_path / "suite.yaml"
    file.write_text(text)
    golden(f"ids/{name}.txt", support.swept(file))


def test_what_makes_a_pair_another(golden, tmp_path):
    file, texts = tmp_path / "suite.yaml", []
    for name, arms in OVERRIDES.items():
        file.write_text(
            f"suite_name: s\n{CHECKPOINT}\narms: {arms}\n"
            "environments: [{name: old, requirements: [orbax-checkpoint==0.11.20]}]\n"
            "benchmarks: [{generator: save_restore, options: {use_compression: [true, false]}}]\n"
        )
        texts.append(f"# {name}\n{support.swept(file)}")
        for entry in support.entries(file.read_text()):
            sides = support.sides(entry).items()
            texts[-1] += "".join(
                f"{entry.id} {arm}: {side.id}  {side.name}\n" for arm, side in sides
            )
    golden("ids/pairs.txt", "\n".join(texts))


@pytest.mark.parametrize("name", ["tour", "framework_comparison", "releases"])
def test_points_as_they_travel(golden, name):
    file = EXAMPLES / f"{name}.yaml"
    golden(f"ids/{name}.txt", support.said("expand", file))
    golden(f"ids/{name}.jsonl", support.said("expand", file, "--json"))


def test_orders_of_the_arms(golden):
    lines = [
        f"{run_id} {pair_id} {block}: {' '.join(support.arrangement(run_id, pair_id, block))}\n"
        for run_id in ("abcdef012345", "000000000000", "run 1")
        for pair_id in ("a3a634ac0af8", "332f4255a359")
        for block in (0, 1, 2, 3, 4, 5, 29)
    ]
    golden("ids/orders_of_arms.txt", "".join(lines))
