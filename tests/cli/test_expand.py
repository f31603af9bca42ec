"""`orbax-bench expand`."""

import json

import pytest

from orbax_bench_core.sweep import entry_from_json

OPTIONS = "{use_ocdbt: [true, false]}"
UNEVEN = """\
mesh_configs: [{mesh_axes: [d], ici_parallelism: {d: 4}}, {mesh_axes: [d]}]
checkpoint_config: {spec: {w: {dtype: int8, shape: [6], sharding: [d]}}}
reuse_checkpoint: true
"""


def test_points_are_printed_with_id_and_name(orbax_bench, write_suite):
    lines = orbax_bench("expand", write_suite(OPTIONS)).out.splitlines()
    assert [line.split("  ")[1] for line in lines[:2]] == [
        "save_restore[use_ocdbt=true]",
        "save_restore[use_ocdbt=false]",
    ]
    assert lines[2:] == ["2 points"]


def test_what_is_skipped_and_what_has_no_effect_is_printed(orbax_bench, write_suite):
    lines = orbax_bench("expand", write_suite(extra=UNEVEN)).out.splitlines()
    assert lines[1].startswith("skipped: save_restore[mesh=d4,ckpt=w]: leaf w: dimension 0 has 6 ")
    assert lines[2:] == [
        "note: `reuse_checkpoint` has no effect, here or in Orbax's own framework",
        "1 point",
    ]


@pytest.fixture
def json_points(orbax_bench, write_suite):
    lines = orbax_bench("expand", "--json", write_suite(OPTIONS, UNEVEN)).out.splitlines()
    return [json.loads(line) for line in lines]


def test_json_lines_are_the_points_and_nothing_else(json_points):
    assert [point["options"]["use_ocdbt"] for point in json_points] == [True, False]


def test_a_json_line_is_the_point_of_its_id(json_points):
    for fields in json_points:
        id_ = fields.pop("id")
        assert entry_from_json(json.dumps(fields)).id == id_


def test_both_forms_print_the_same_ids(orbax_bench, write_suite, json_points):
    lines = orbax_bench("expand", write_suite(OPTIONS, UNEVEN)).out.splitlines()
    assert [line.split("  ")[0] for line in lines[:2]] == [point["id"] for point in json_points]


def test_without_imports_a_class_of_somebody_else_is_named_and_not_run(orbax_bench, tmp_path):
    (tmp_path / "planted.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    suite = tmp_path / "s.yaml"
    suite.write_text("suite_name: s\nbenchmarks:\n- {generator: planted.Mine, options: {}}\n")
    outcome = orbax_bench("expand", suite, "--no-import")
    assert outcome.code == 2
    assert f"{suite}:3: benchmarks[0].generator: 'planted.Mine' is no built-in" in outcome.err
    assert not (tmp_path / "ran").exists()


def test_without_imports_a_suite_of_built_ins_is_expanded(orbax_bench, write_suite):
    outcome = orbax_bench("expand", write_suite(), "--no-import")
    assert outcome.code == 0
    assert outcome.out.endswith("1 point\n")


@pytest.mark.parametrize(
    ("earlier", "now"),
    [
        ("v1_benchmark.V1Benchmark", "save_restore"),
        ("v1_resharding_benchmark.V1ReshardingBenchmark", "resharding"),
        ("lustre_benchmark.LustreBenchmark", "lustre"),
    ],
)
def test_what_earlier_releases_of_orbax_called_a_benchmark_is_the_built_in(
    orbax_bench, write_suite, earlier, now
):
    suite = write_suite("{reference_checkpoint_path: a, reference_sharding_path: b}")
    text = suite.read_text() if now == "resharding" else write_suite().read_text()
    framework = "orbax.checkpoint._src.testing.benchmarks"
    suite.write_text(text.replace("save_restore", f"{framework}.{earlier}"))
    done = orbax_bench("expand", suite)
    assert (done.code, done.err) == (0, "")
    assert done.out.partition("  ")[2].startswith(now)
    assert ("`use_zarr3` was False by default" in done.out) == (now != "lustre")
    suite.write_text(suite.read_text().replace("options: {", "options: {use_zarr3: false, "))
    assert "by default" not in orbax_bench("expand", suite).out
