"""`orbax-bench expand`."""

import json

import pytest

from orbax_bench_core.sweep import BUILTINS, describe_options, entry_from_json, load_class

OPTIONS = "{use_ocdbt: [true, false]}"
UNEVEN = """\
mesh_configs: [{mesh_axes: [d], ici_parallelism: {d: 4}}, {mesh_axes: [d]}]
checkpoint_config: {spec: {w: {dtype: int8, shape: [6], sharding: [d]}}}
reuse_checkpoint: true
"""


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
    assert f"{suite}:3: benchmarks[0].generator: 'planted.Mine' is not a built-in" in outcome.err
    assert not (tmp_path / "ran").exists()


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


_said = {}


@pytest.fixture
def listed(orbax_bench, monkeypatch):
    """What the command says on a narrow terminal, always the same, without ends of lines."""
    monkeypatch.setenv("COLUMNS", "80")
    if not _said:
        _said["list"] = " ".join(orbax_bench("list", *BUILTINS).out.split())
    return _said["list"]


@pytest.mark.parametrize("option", describe_options(load_class(BUILTINS["save_restore"])))
def test_every_option_of_save_restore_is_listed_with_its_meaning(listed, option):
    default = {True: "true", False: "false", None: "null"}[option.default]
    assert option.meaning
    assert f"{option.name}: {option.type}, by default {default} {option.meaning}" in listed


def test_a_name_that_is_none_is_refused_with_the_nearest(orbax_bench):
    outcome = orbax_bench("list", "save_restor")
    assert outcome.code == 2
    assert "there is no built-in benchmark 'save_restor'; did you mean 'save_restore'?" in (
        outcome.err
    )


def test_json_has_every_option(orbax_bench):
    (found,) = json.loads(orbax_bench("list", "save_restore", "--json").out)
    assert (found["name"], found["class"]) == ("save_restore", BUILTINS["save_restore"])
    assert {option["name"] for option in found["options"]} == {
        option.name for option in describe_options(load_class(BUILTINS["save_restore"]))
    }


NAME = "orbax.checkpoint._src.testing.benchmarks"
MODULE = f"from {NAME}.core import core  # mine\n"
SUITE = (
    f"suite_name: s\nbenchmarks: [{{generator: {NAME}.v1.benchmark.Benchmark, options: {{}}}}]\n"
)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench.py").write_text(MODULE)
    (tmp_path / "suite.yaml").write_text(SUITE)
    return tmp_path


def test_the_change_is_printed_and_nothing_is_written(files, orbax_bench):
    done = orbax_bench("migrate", "bench.py", "suite.yaml")
    assert done.code == 0
    assert done.out.startswith("--- bench.py\n+++ bench.py\n@@ -1 +1 @@\n")
    assert "+from orbax_bench_core import authoring as core  # mine\n" in done.out
    assert "+benchmarks: [{generator: save_restore, options: {}}]\n" in done.out
    assert done.err == "Nothing is written yet: --write does it.\n"
    assert (files / "bench.py").read_text() == MODULE


def test_files_are_written_when_asked(files, orbax_bench):
    done = orbax_bench("migrate", "bench.py", "suite.yaml", "--write")
    assert (done.code, done.out) == (0, "bench.py: changed\nsuite.yaml: changed\n")
    assert (files / "bench.py").read_text().startswith("from orbax_bench_core import authoring")
    again = orbax_bench("migrate", "bench.py", "--write")
    assert (again.code, again.out) == (0, "bench.py: nothing to change\n")


def test_what_is_left_is_said_and_is_exit_code_1(files, orbax_bench):
    (files / "bench.py").write_text(MODULE + "core.Benchmark()\n")
    done = orbax_bench("migrate", "bench.py", "--write")
    assert done.code == 1
    assert done.err.startswith("left: bench.py:2: orbax_bench_core.authoring has no `Benchmark`")


def test_a_file_that_cannot_be_read_changes_nothing(files, orbax_bench):
    (files / "odd.py").write_bytes(b"\xff\xfe")
    for odd in ("odd.py", "nowhere.py", "."):
        done = orbax_bench("migrate", "bench.py", odd, "--write")
        assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert (files / "bench.py").read_text() == MODULE


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("none.py", "none.py: there is no such file; give Python files and suites"),
        (".", ".: a folder; give the files in it, such as ./*.py"),
    ],
)
def test_what_is_no_file_is_said_so(files, orbax_bench, given, message):
    done = orbax_bench("migrate", given)
    assert (done.code, done.err) == (2, f"error: {message}\n")


MANY_MISTAKES = """\
suite_name: s
benchmrks: []
benchmarks:
- generator: save_restor
  options: {}
- generator: save_restore
  options: {use_ocdb: true, use_zarr3: 3, enable_trace: []}
mesh_config: {mesh_axes: [d], ici_parallelism: {e: 4}}
num_repeats: 0
"""


def test_every_mistake_of_a_suite_is_in_the_first_list(orbax_bench, tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text(MANY_MISTAKES)
    outcome = orbax_bench("expand", file)
    lines = [line.removeprefix(f"error: {file}:") for line in outcome.err.splitlines()]
    assert (outcome.code, [line.partition(": ")[2].partition(":")[0] for line in lines]) == (
        2,
        [
            "benchmrks",
            "benchmarks[0].generator",
            "benchmarks[1].options.use_ocdb",
            "benchmarks[1].options.enable_trace",
            "benchmarks[1].options.use_zarr3",
            "mesh_config.ici_parallelism",
            "num_repeats",
        ],
    )
