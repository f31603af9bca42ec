"""The identity of a point: what changes it, what does not, and that it never collides."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbax_bench_core.config import BITS, CheckpointConfig, MeshConfig
from orbax_bench_core.sweep import entry_from_json
from orbax_bench_core.sweep.point import SweepPoint, nearest

ARRAY = {"dtype": "float32", "shape": [8, 8], "sharding": ["x", None]}
SPEC = {"a": ARRAY, "b": "int"}
MESH = {"mesh_axes": ["x", "y"], "ici_parallelism": {"x": 4}, "dcn_parallelism": {"y": 2}}


def checkpoint(**fields):
    source = {} if "path" in fields else {"spec": SPEC}
    return CheckpointConfig(**{**source, **fields})


def mesh(**fields):
    return MeshConfig(**{**MESH, **fields})


@pytest.fixture
def full_point(make_point):
    """Builds a point that has everything a point can have."""
    base = {"checkpoint": checkpoint(), "mesh": mesh(), "options": {"a": True, "b": None}}
    return lambda **fields: make_point(**{**base, **fields})


def test_the_id_of_a_point_is_this_for_ever(full_point):
    """Records and baselines are found by id: a change here orphans all that were ever written."""
    assert full_point().id == "be036ddacb71"


def test_a_class_with_an_id_name_may_move(full_point):
    before, after = (full_point(benchmark=path, id_name="mine") for path in ("a.Mine", "b.c.Mine"))
    assert before.id == after.id != full_point(benchmark="a.Mine").id


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"benchmark": "other.module.SaveRestore"}, id="module"),
        pytest.param({"benchmark": "my.save_restore.Other"}, id="class"),
        pytest.param({"options": {"a": 1, "b": None}}, id="true is not 1"),
        pytest.param({"options": {"a": 1.0, "b": None}}, id="true is not 1.0"),
        pytest.param({"options": {"a": "true", "b": None}}, id="true is not a word"),
        pytest.param({"options": {"a": [True], "b": None}}, id="true is not a list"),
        pytest.param({"options": {"a": True}}, id="an option fewer"),
        pytest.param({"options": {"a": True, "b": None, "c": None}}, id="an option more"),
        pytest.param({"mesh": None}, id="no mesh"),
        pytest.param({"mesh": mesh(mesh_axes=["y", "x"])}, id="device order of axes"),
        pytest.param(
            {"mesh": mesh(ici_parallelism={"x": 4, "y": 2}, dcn_parallelism=None)}, id="ICI only"
        ),
        pytest.param(
            {"mesh": mesh(ici_parallelism={"x": 2}, dcn_parallelism={"x": 2, "y": 2})},
            id="split over DCN",
        ),
        pytest.param({"mesh": mesh(process_is_granule=True)}, id="granule"),
        pytest.param({"mesh": mesh(allow_split_physical_axes=True)}, id="physical axes"),
        pytest.param({"checkpoint": CheckpointConfig()}, id="no checkpoint"),
        pytest.param({"checkpoint": checkpoint(spec={})}, id="empty spec"),
        pytest.param({"checkpoint": checkpoint(random_seed=1)}, id="seed"),
        pytest.param({"checkpoint": checkpoint(path="/a")}, id="path"),
        pytest.param({"checkpoint": checkpoint(path="/b")}, id="another path"),
        pytest.param(
            {"checkpoint": checkpoint(path="/a", sharding_config_path="/s")}, id="sharding file"
        ),
        pytest.param(
            {"checkpoint": checkpoint(path="/a", load_with_colocated_python=True)}, id="colocated"
        ),
        pytest.param(
            {"checkpoint": checkpoint(spec={"b": "int", "a": ARRAY})}, id="order of leaves"
        ),
        pytest.param({"checkpoint": checkpoint(spec={"a": ARRAY, "c": "int"})}, id="leaf name"),
        pytest.param({"checkpoint": checkpoint(spec={"a": ARRAY, "b": "str"})}, id="leaf kind"),
        pytest.param({"checkpoint": checkpoint(spec={"n": SPEC})}, id="nesting"),
        pytest.param(
            {"checkpoint": checkpoint(spec={**SPEC, "a": {**ARRAY, "dtype": "int32"}})}, id="dtype"
        ),
        pytest.param(
            {"checkpoint": checkpoint(spec={**SPEC, "a": {**ARRAY, "shape": [8, 4]}})}, id="shape"
        ),
        pytest.param(
            {"checkpoint": checkpoint(spec={**SPEC, "a": {**ARRAY, "sharding": [None, "x"]}})},
            id="sharding",
        ),
        pytest.param({"processes": 2}, id="processes"),
        pytest.param({"conditions": {"cache": "cold"}}, id="cache"),
        pytest.param({"conditions": {"durable": True}}, id="durable"),
        pytest.param({"conditions": {"host_memory": "fresh"}}, id="host memory"),
        pytest.param({"conditions": {"x64": False}}, id="x64"),
    ],
)
def test_whatever_is_measured_changes_the_id(full_point, fields):
    assert full_point(**fields).id != full_point().id


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"label": "something else"}, id="label"),
        pytest.param({"given": ("a",)}, id="given or by default"),
        pytest.param({"options": {"b": None, "a": True}}, id="order of options"),
        pytest.param({"mesh": mesh(ici_parallelism={"x": 4})}, id="the same mesh"),
    ],
)
def test_what_is_not_measured_leaves_the_id(full_point, fields):
    assert full_point(**fields).id == full_point().id


def test_suite_name_and_repeats_leave_the_ids(expand):
    entry = ("save_restore", "{use_ocdbt: [true, false]}")
    other = expand(entry, extra="num_repeats: 7\nexecution: {seed: 3, retries: 0}\n")
    assert [point.id for point in other.points] == [point.id for point in expand(entry).points]


IDS = """
import json, sys
from orbax_bench_core.config.load import parse_suite
from orbax_bench_core.sweep.expansion import expand_here
print(json.dumps([point.id for point in expand_here(parse_suite(sys.stdin.read())).points]))
"""
SUITE = """
suite_name: s
checkpoint_config: {spec: {w: {dtype: int8, shape: [8], sharding: [d]}}, random_seed: 1}
mesh_config: {mesh_axes: [d], ici_parallelism: {d: 8}}
benchmarks:
- {generator: save_restore, options: {use_zarr3: [true, false], use_ocdbt: false}}
"""
SHUFFLED = """
benchmarks:
- {options: {use_ocdbt: false, use_zarr3: [true, false]}, generator: save_restore}
mesh_config: {ici_parallelism: {d: 8}, mesh_axes: [d]}
checkpoint_config: {random_seed: 1, spec: {w: {sharding: [d], shape: [8], dtype: int8}}}
suite_name: s
"""


@pytest.mark.slow
def test_ids_are_the_same_in_every_process_and_order_of_keys():
    def ids(text, seed):
        process = subprocess.run(
            [sys.executable, "-c", IDS],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        return json.loads(process.stdout)

    assert ids(SUITE, "1") == ids(SHUFFLED, "2")


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
axes = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 0.1]) | names
option_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2)
)
arrays = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(sorted(BITS)),
        "shape": st.just([4, 4]),
        "sharding": st.none() | st.lists(st.none() | st.sampled_from("ab") | axes, max_size=2),
    }
)
specs = st.recursive(
    st.sampled_from(["int", "str"]) | arrays,
    lambda inner: st.dictionaries(st.sampled_from(["p", "q", "p.q"]), inner, max_size=2),
).map(lambda node: {"root": node})
checkpoints = st.fixed_dictionaries(
    {"random_seed": st.integers(0, 2)}, optional={"spec": specs}
) | st.fixed_dictionaries({"path": st.sampled_from(["/a", "/b", "gs://a/b"])})
sizes = st.dictionaries(st.sampled_from("ab"), st.integers(1, 3), max_size=2)
meshes = st.none() | st.fixed_dictionaries(
    {
        "mesh_axes": st.permutations(["a", "b"]),
        "ici_parallelism": sizes,
        "dcn_parallelism": st.none() | sizes,
        "process_is_granule": st.booleans(),
    }
)
raw_points = st.fixed_dictionaries(
    {
        "benchmark": st.sampled_from(["m.A", "m.B", "n.A"]),
        "options": st.dictionaries(names, option_values, max_size=3),
        "checkpoint": checkpoints,
        "mesh": meshes,
        "processes": st.integers(1, 2),
    }
)


def build(raw):
    layout = raw["mesh"] and MeshConfig(**raw["mesh"])
    return SweepPoint(
        **{**raw, "checkpoint": CheckpointConfig(**raw["checkpoint"]), "mesh": layout}
    )


def meaning(raw):
    """Text that differs whenever two points do; the order of keys counts in a spec only."""
    spec = json.dumps(raw["checkpoint"].get("spec"))
    return spec + json.dumps(raw, sort_keys=True)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(raw_points, min_size=2, max_size=12, unique_by=meaning))
def test_defect_29_points_that_differ_never_share_an_id(raws):
    assert len({build(raw).id for raw in raws}) == len(raws)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(raw_points)
def test_a_point_travels_as_json_and_stays_itself(raw):
    point = build(raw)
    travelled = entry_from_json(point.model_dump_json())
    assert travelled == point
    assert travelled.id == point.id


def test_the_nearest_point_differs_in_the_fewest_fields(make_point):
    near, far = make_point(options={"a": 1, "b": 2}), make_point(options={"a": 9, "b": 9})
    assert nearest(make_point(options={"a": 1, "b": 3}), [far, near]) == near


def test_points_of_another_benchmark_are_not_near(make_point):
    assert nearest(make_point(), [make_point(benchmark="m.Other")]) is None


def test_a_point_names_the_object_stores_that_it_reads_and_writes(full_point):
    assert full_point(storage="/mnt/fast", options={"note": "not at gs://a"}).stores == []
    point = full_point(
        storage="gs://a/b", checkpoint=checkpoint(path="gs://c"), options={"path": "gs://d", "n": 1}
    )
    assert point.stores == ["gs://a/b", "gs://c", "gs://d"]
