"""From a suite to its sweep points: order, duplicates, what is dropped, and labels."""

import re

import pytest

from orbax_bench_core.config import SuiteError, parse_suite
from orbax_bench_core.sweep import expand, expand_here

UPSTREAM = "orbax.checkpoint._src.testing.benchmarks.v1.benchmark.Benchmark"
MESHES = """\
mesh_configs:
- {mesh_axes: [d], ici_parallelism: {d: 8}}
- {mesh_axes: [d], ici_parallelism: {d: 2}}
"""
CHECKPOINTS = """\
checkpoint_configs:
- {spec: {a: int}}
- {spec: {b: int}}
"""


def test_options_vary_slowest_then_meshes_then_checkpoints(expand):
    points = expand(
        ("save_restore", "{use_ocdbt: [true, false]}"), extra=MESHES + CHECKPOINTS
    ).points
    found = [(p.options["use_ocdbt"], p.num_devices, p.checkpoint.label) for p in points]
    assert found == [
        (True, 8, "a"),
        (True, 8, "b"),
        (True, 2, "a"),
        (True, 2, "b"),
        (False, 8, "a"),
        (False, 8, "b"),
        (False, 2, "a"),
        (False, 2, "b"),
    ]


def test_processes_and_cache_vary_fastest(expand):
    extra = CHECKPOINTS + "execution: {processes: [1, 2], cache: [warm, cold]}\n"
    points = expand(("save_restore", "{}"), extra=extra).points
    found = [(p.checkpoint.label, p.processes, p.conditions.cache) for p in points]
    assert found[:5] == [
        ("a", 1, "warm"),
        ("a", 1, "cold"),
        ("a", 2, "warm"),
        ("a", 2, "cold"),
        ("b", 1, "warm"),
    ]


def test_options_vary_in_the_order_of_the_class_and_not_of_the_file(expand):
    options = "{use_zarr3: [true, false], use_ocdbt: [true, false]}"
    points = expand(("save_restore", options)).points
    names = ("use_ocdbt", "use_zarr3")
    assert [tuple(point.options[name] for name in names) for point in points] == [
        (True, True),
        (True, False),
        (False, True),
        (False, False),
    ]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("{use_ocdbt: [true, true]}", id="value given twice"),
        pytest.param("{use_ocdbt: true, use_zarr3: [true]}", id="defaults written out"),
    ],
)
def test_equal_values_are_one_point(expand, options):
    assert len(expand(("save_restore", options)).points) == 1


def test_a_point_of_two_entries_is_swept_once_and_noted(expand):
    expansion = expand(("save_restore", "{}"), (UPSTREAM, "{use_ocdbt: [true, false]}"))
    assert len(expansion.points) == 2
    assert expansion.notes == ("benchmarks[1] repeats a point that is already swept",)


def test_a_combination_that_makes_no_sense_is_dropped_and_counted(expand):
    options = "{enable_replica_parallel_separate_folder: [true, false]}"
    expansion = expand(("save_restore", options))
    found = [p.options["enable_replica_parallel_separate_folder"] for p in expansion.points]
    assert found == [False]
    assert "save_restore: 1 combination(s) of options dropped" in expansion.notes[0]


def test_a_suite_of_which_nothing_is_left_says_why(expand):
    with pytest.raises(SuiteError, match=r"suite\.yaml: the sweep is empty: .* 1 combination"):
        expand(("save_restore", "{enable_replica_parallel_separate_folder: true}"))


def test_is_valid_that_raises_is_named_with_what_it_was_given(write_benchmark, only_problem):
    path = write_benchmark(
        """
        size: int = 1
        flag: bool = True
        def is_valid(self):
            return 1 / self.size > 0
        """
    )
    problem = only_problem(path, "{flag: true, size: [1, 0]}")
    assert (problem.line, problem.key) == (3, "benchmarks[0].options")
    assert re.fullmatch(
        r"Options rejects \{'size': 0, 'flag': True\}: ZeroDivisionError: division by zero "
        r"\(\w+\.py:\d+\)",
        problem.message,
    )


def test_is_valid_that_raises_for_an_arm_is_named_with_its_line(write_benchmark, expand):
    path = write_benchmark(
        """
        size: int = 1
        def is_valid(self):
            return 1 / self.size > 0
        """
    )
    arms = "arms: {candidate: {options: {size: 0}}}\n"
    with pytest.raises(SuiteError, match=r"ZeroDivisionError: division by zero \(\w+\.py:\d+\)"):
        expand((path, "{}"), extra=arms)


def test_a_mesh_that_cannot_hold_a_checkpoint_skips_the_point_and_says_why(expand):
    spec = "checkpoint_config: {spec: {w: {dtype: int8, shape: [6], sharding: [d]}}}\n"
    expansion = expand(("save_restore", "{}"), extra=MESHES + spec)
    assert [point.num_devices for point in expansion.points] == [2]
    (skip,) = expansion.skipped
    assert skip.point.num_devices == 8
    assert skip.reason.startswith("leaf w: dimension 0 has 6 elements")


@pytest.mark.parametrize(
    ("options", "extra", "labels"),
    [
        pytest.param("{}", "", [""], id="nothing varies"),
        pytest.param(
            "{use_ocdbt: [true, false], use_zarr3: false}",
            "",
            ["use_ocdbt=true", "use_ocdbt=false"],
            id="only what varies",
        ),
        pytest.param(
            "{chunk_byte_size: [null, 64]}",
            "",
            ["chunk_byte_size=null", "chunk_byte_size=64"],
            id="as in YAML",
        ),
        pytest.param(
            "{}",
            MESHES + "checkpoint_config: {spec: {a: int}}",
            ["mesh=d8,ckpt=a", "mesh=d2,ckpt=a"],
            id="mesh and checkpoint",
        ),
        pytest.param(
            "{}", "checkpoint_config: {path: /runs/step_7}", ["ckpt=step_7"], id="loaded checkpoint"
        ),
        pytest.param(
            "{}",
            "execution: {processes: [1, 2], cache: [warm, cold]}",
            ["", "cache=cold", "processes=2", "processes=2,cache=cold"],
            id="processes and cache",
        ),
    ],
)
def test_a_label_names_what_varies(expand, options, extra, labels):
    points = expand(("save_restore", options), extra=extra).points
    assert [point.label for point in points] == labels


@pytest.mark.parametrize(
    ("extra", "labels"),
    [
        pytest.param(
            "checkpoint_configs:\n"
            "- spec: {w: {dtype: float32, shape: [4, 4]}}\n"
            "- spec: {w: {dtype: bfloat16, shape: [4, 4]}}\n"
            "- spec: {w: {dtype: float32, shape: [8, 4]}}\n",
            ["ckpt=w(4x4·float32)", "ckpt=w(4x4·bfloat16)", "ckpt=w(8x4·float32)"],
            id="shapes and dtypes",
        ),
        pytest.param(
            "checkpoint_configs: [{path: /a/step_7}, {path: /b/step_7}, {path: /c/step_8}]",
            ["ckpt=step_7(a)", "ckpt=step_7(b)", "ckpt=step_8"],
            id="paths",
        ),
        pytest.param(
            "checkpoint_configs: [{spec: {a: int, b: str}}, {spec: {a: {b: str}, c: int}}, "
            "{spec: {a: str, b: int}}]",
            ["ckpt=a+1(a:int)", "ckpt=a+1(no a)", "ckpt=a+1(a:str)"],
            id="leaves",
        ),
        pytest.param(
            "checkpoint_configs: [{name: big, spec: {a: int}}, {spec: {a: int, b: int}}]",
            ["ckpt=big", "ckpt=a+1"],
            id="a name",
        ),
        pytest.param(
            "mesh_configs:\n"
            "- {mesh_axes: [data], ici_parallelism: {data: 8}}\n"
            "- {mesh_axes: [data, model], ici_parallelism: {data: 8}}\n"
            "- {mesh_axes: [model, data], ici_parallelism: {data: 8}}\n"
            "- {name: wide, mesh_axes: [data, x], ici_parallelism: {data: 8}}\n",
            [
                "mesh=data8(data8)",
                "mesh=data8(data8·model1)",
                "mesh=data8(model1·data8)",
                "mesh=wide",
            ],
            id="axes of size 1",
        ),
    ],
)
def test_no_two_points_have_one_label(expand, extra, labels):
    points = expand(("save_restore", "{}"), extra=extra).points
    assert [point.label for point in points] == labels


def test_a_name_changes_no_id(expand):
    mesh, spec = "mesh_axes: [d], ici_parallelism: {d: 8}", "spec: {a: int}"
    (plain,), (named,) = (
        expand(
            ("save_restore", "{}"),
            extra=f"mesh_config: {{{name} {mesh}}}\ncheckpoint_config: {{{name} {spec}}}\n",
        ).points
        for name in ("", "name: mine,")
    )
    assert (plain.label, named.label) == ("mesh=d8,ckpt=a", "mesh=mine,ckpt=mine")
    assert plain.id == named.id


def test_storage_is_swept_and_told_apart(expand, tmp_path):
    places = [str(tmp_path / "a"), str(tmp_path / "b")]
    points = expand(("save_restore", "{}"), extra=f"storage: {places}\n").points
    assert [point.storage for point in points] == places
    assert [point.label for point in points] == [f"storage={place}" for place in places]
    assert len({point.id for point in points}) == 2


def test_the_allocator_is_swept_like_a_condition():
    suite = parse_suite(
        "suite_name: s\nexecution: {host_memory: [reused, fresh]}\n"
        "benchmarks:\n- {generator: save_restore, options: {}}\n"
    )
    kept, fresh = expand_here(suite).plain
    assert [point.label for point in (kept, fresh)] == ["host_memory=reused", "host_memory=fresh"]
    plain = parse_suite("suite_name: s\nbenchmarks:\n- {generator: save_restore, options: {}}\n")
    assert [point.id for point in expand_here(plain).plain] == [kept.id]


MANY = """
suite_name: s
execution: {{max_points: {most}}}
benchmarks:
- generator: save_restore
  options:
    chunk_byte_size: {values}
    save_concurrent_gb: {values}
    restore_concurrent_gb: {values}
"""


def test_a_sweep_of_more_points_than_a_suite_may_have_is_refused_with_the_numbers_at_once():
    suite = parse_suite(MANY.format(most=10_000, values=list(range(1, 1001))))
    with pytest.raises(SuiteError) as caught:
        expand(suite)
    assert str(caught.value) == (
        "line 6: benchmarks[0].options: 1,000,000,000 combinations (1,000 chunk_byte_size x 1,000 "
        "save_concurrent_gb x 1,000 restore_concurrent_gb), and a suite may have 10,000; give "
        "fewer values, or raise execution.max_points"
    )


def test_a_suite_lifts_its_own_bound_no_further_than_any_may():
    with pytest.raises(SuiteError, match=r"execution\.max_points: expected less than or equal to"):
        parse_suite(MANY.format(most=100_001, values=[1, 2]))
