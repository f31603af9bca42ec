"""A run beside a baseline file of Orbax's own framework, which its own code writes here."""

import json

import pytest
from orbax.checkpoint._src.testing.benchmarks.core.baseline import Baseline, BaselineRecorder

from orbax_bench_core.measure import TIME
from tests.support.paired_runs import make_separate_run  # noqa: F401 - fixture

SAVE = f"save::{TIME}"


@pytest.fixture
def stored(tmp_path):
    """Writes a baseline as Orbax's framework does, and returns its file."""

    def write(name="Benchmark", **fields):
        given = {
            "benchmark_name": f"{name}_0123456789ab",
            "captured_at": "2026-03-02T06:00:00",
            "captured_at_sha": "c0ffee",
            "fixture": "generated",
            "config": {"use_ocdbt": True},
            "metrics": {SAVE: {"max": 0.5, "min": 0.5, "mean": 0.5}},
            **fields,
        }
        return BaselineRecorder(str(tmp_path / "stored")).write(Baseline(**given))

    return write


@pytest.fixture
def run(make_point, make_separate_run):
    return make_separate_run(0, point=make_point(options={"use_ocdbt": True}), sigma=0)


@pytest.mark.parametrize("width", [80, 160])
def test_means_stand_beside_each_other_and_it_is_said_that_no_test_was_made(
    orbax_bench, stored, run, monkeypatch, width
):
    monkeypatch.setenv("COLUMNS", str(width))
    done = orbax_bench("compare", stored(), run.root)
    said = " ".join(done.out.split())
    assert done.code == 0
    assert "0.5 s 1 s +100.0 % lower" in said
    assert "neither its samples nor their number, so that no test can be made" in said
    assert "Metrics: mean over the repeats, then over the hosts" in said
    assert "REGRESSION" not in said
    assert "PASS" not in said


def test_json_says_that_the_baseline_has_no_repeats(orbax_bench, stored, run):
    (point,) = json.loads(orbax_bench("compare", stored(), run.root, "--json").out)["points"]
    (metric,) = point["metrics"]
    assert (point["word"], point["operations"]) == ("INCONCLUSIVE", [])
    assert metric["repeats"] == {"baseline": 0, "candidate": 6}
    assert (metric["baseline"], metric["candidate"], metric["apart"]) == (0.5, 1.0, None)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"config": {"use_ocdbt": False}}, "use_ocdbt: False instead of True"),
        ({"name": "ReshardingBenchmark"}, "ReshardingBenchmark instead of save_restore"),
    ],
)
def test_only_the_benchmark_with_the_same_options_is_compared(
    orbax_bench, stored, run, fields, said
):
    done = orbax_bench("compare", stored(**fields), run.root)
    assert done.code == 2
    assert said in done.out
    assert "no point in common" in done.err


def test_other_surroundings_are_named(orbax_bench, stored, make_separate_run, make_point):
    devices = {"devices": {"kind": "cpu", "count": 8, "processes": 1}}
    run = make_separate_run(
        0, point=make_point(options={"use_ocdbt": True}), sigma=0, provenance=devices
    )
    file = stored(manifest={"jax_device_kind": "TPU v5", "jax_process_count": 1})
    assert "jax_device_kind: cpu, was TPU v5" in orbax_bench("compare", file, run.root).out


def test_the_key_of_the_published_guide_is_read_too(orbax_bench, stored, run):
    file = stored(metrics={f"save_{TIME}": {"mean": 2.0}})
    assert "-50.0 %" in orbax_bench("compare", file, run.root).out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 2}, "schema version 1: schema_version: "),
        ({"metrics": {SAVE: {"mean": "fast"}}}, f"schema version 1: metrics.{SAVE}.mean: "),
        ({"metrics": {SAVE: {"mean": float("nan")}}}, f"schema version 1: metrics.{SAVE}.mean: "),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(orbax_bench, stored, run, change, message):
    file = stored()
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    done = orbax_bench("compare", file, run.root)
    assert done.code == 2
    assert done.err.startswith(f"error: {file}: not a baseline of Orbax's own framework of ")
    assert message in done.err


def test_a_file_that_is_no_json_is_an_error_that_names_it(orbax_bench, stored, run):
    file = stored()
    file.write_text("{")
    done = orbax_bench("compare", file, run.root)
    assert (done.code, done.out) == (2, "")
    assert str(file) in done.err
