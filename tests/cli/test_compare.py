"""`orbax-bench compare`."""

import dataclasses
import json
import math
import random
import shutil

import pytest
from orbax.checkpoint._src.testing.benchmarks.core.baseline import Baseline, BaselineRecorder

from orbax_bench_core.measure import TIME
from orbax_bench_core.records import Run
from tests.support.paired_runs import (  # noqa: F401 - fixtures
    BYTES,
    HITS,
    RATE,
    arms,
    make_paired_run,
    make_separate_run,
)


def test_of_a_run_without_arms_it_says_what_compares_its_points(orbax_bench, make_separate_run):
    run = make_separate_run(0)
    for given in ((run.root, run.root), (run.root,)):
        outcome = orbax_bench("compare", *given)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err == (
            f"error: {run.root} holds a run without arms, which is one side of a comparison. "
            f"`orbax-bench best {run.root}` compares its points with each other. For a verdict "
            "give a second run or baseline, or measure both sides in one place with "
            "`orbax-bench ab`\n"
        )


def test_of_a_good_and_a_wrong_place_the_wrong_one_is_told(
    orbax_bench, make_separate_run, tmp_path
):
    good, none = str(make_separate_run(0).root), str(tmp_path / "none")
    for given in ((good, none), (none, good)):
        outcome = orbax_bench("compare", *given)
        assert (outcome.code, outcome.err.count("error:")) == (2, 1)
        assert f"error: {none}" in outcome.err
        assert "does not exist" in outcome.err


def test_a_run_that_has_measured_nothing_is_told_as_such(orbax_bench, make_separate_run, tmp_path):
    good, bare = make_separate_run(0).root, make_separate_run(1).root
    shutil.rmtree(bare / "records")
    for given in ((bare, good), (good, bare)):
        outcome = orbax_bench("compare", *given)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err == (
            f"error: {bare} has no repeat that was measured yet; run its suite into it first\n"
        )


def test_a_registry_of_the_run_itself_is_no_registry_without_captures(
    orbax_bench, make_separate_run, tmp_path
):
    run = make_separate_run(0).root
    assert orbax_bench("baseline", "capture", tmp_path / "reg", run).code == 0
    outcome = orbax_bench("compare", tmp_path / "reg" / "v9", run)
    assert outcome.code == 2
    assert outcome.err == (
        f"error: {tmp_path}/reg has captures of the run itself alone, so that v9 is none of "
        "another run; capture another one there, or give a run directory\n"
    )


def test_a_baseline_without_a_common_point_was_not_compared(
    orbax_bench, make_separate_run, make_point, tmp_path
):
    before = make_separate_run(0, point=make_point(options={"use_ocdbt": True}))
    after = make_separate_run(1, point=make_point(options={"use_ocdbt": False}))
    assert orbax_bench("baseline", "capture", tmp_path / "reg", before.root, "--promote").code == 0
    outcome = orbax_bench("compare", tmp_path / "reg", after.root)
    assert outcome.code == 2
    assert "have no point in common, so that nothing was compared" in outcome.err


def test_stalls_that_begin_late_are_in_the_word(orbax_bench, make_paired_run, tmp_path):
    """A noisy load goes on to 60 operations, and saves stall from the 13th on."""
    run, draw = make_paired_run(0, blocks=30), random.Random(0)
    for record in list(Run(run).records()):
        (save,) = record.samples
        if record.arm == "candidate" and record.block >= 5 and record.block % 3 == 0:
            save = dataclasses.replace(save, value=6 * save.value)
        load = dataclasses.replace(save, operation="load", value=math.exp(draw.gauss(0, 0.5)))
        again = record.model_copy(update={"samples": (save, load)})
        place = f"records/{record.point_id}/repeat_{record.repeat}/host_0.json"
        (run.root / place).write_text(again.model_dump_json())
    page = tmp_path / "page.html"
    said = "10 of 40 operations of the candidate stalled, and 0 of the baseline"
    outcome = orbax_bench("compare", run.root, "--html", page)
    assert outcome.code == 3
    assert said in " ".join(outcome.out.split())
    assert said in page.read_text()
    (point,) = json.loads(orbax_bench("compare", run.root, "--json").out)["points"]
    verdicts = [each["verdict"] for each in point["operations"]]
    assert {each["operations"] for each in verdicts} == {40}
    assert {each["stalls"]["operations"] for each in verdicts} == {40}


def test_at_the_first_use_a_few_operations_tell_what_they_can(orbax_bench, make_separate_run):
    before = make_separate_run(0, repeats=3).root
    few = make_separate_run(1, 5.8, repeats=3).root
    outcome = orbax_bench("compare", before, few)
    assert (outcome.code, outcome.err) == (0, "")
    assert "INCONCLUSIVE" in outcome.out
    assert "3 of 3 slower than all 3 of the baseline" in outcome.out
    assert "ruled out at the 5 % level" in outcome.out
    assert "the 1 % level needs 4 more of the candidate or 5 on each side" in outcome.out
    enough = make_separate_run(2, 5.8, repeats=7).root
    outcome = orbax_bench("compare", before, enough)
    assert (outcome.code, outcome.err) == (3, "")
    assert "REGRESSION" in outcome.out
    assert "7 of 7 slower than all 3 of the baseline" in outcome.out
    assert "no past runs say how far two runs differ" in outcome.out
    assert "it is more than such runs differ by" in outcome.out


def test_a_baseline_at_its_first_use_ends_with_the_code_of_a_regression(
    orbax_bench, make_separate_run, tmp_path
):
    registry, after = tmp_path / "reg", make_separate_run(1, 5.8).root
    captured = orbax_bench("baseline", "capture", registry, make_separate_run(0).root, "--promote")
    assert captured.code == 0
    outcome = orbax_bench("compare", registry, after)
    assert (outcome.code, "6 of 6 slower than all 6" in outcome.out) == (3, True)
    # 2x would be no news of two runs about which nothing is known.
    outcome = orbax_bench("compare", registry, make_separate_run(2, 1.8).root)
    assert (outcome.code, "INCONCLUSIVE" in outcome.out) == (0, True)


@pytest.mark.parametrize("shown", ["all", "changed", "none"])
def test_a_terminal_of_80_columns_has_those_asked_for(orbax_bench, arms, monkeypatch, shown):
    monkeypatch.setenv("COLUMNS", "80")
    said = orbax_bench("compare", arms.root, "--metrics", shown).out
    flat = "".join(said.split())
    assert (BYTES in flat, HITS[:30] in flat) == (shown != "none", shown == "all")
    table = said.partition("metric  ")[2].partition("\n\n")[0]
    assert all(len(line) <= 80 for line in table.splitlines())


def test_by_default_it_shows_what_differs_most(orbax_bench, arms):
    said = orbax_bench("compare", arms.root).out
    assert "+100.0 %" in said
    assert "1 do not differ; `compare DIR --metrics all` has all" in said


def test_json_has_them(orbax_bench, arms):
    report = json.loads(orbax_bench("compare", arms.root, "--json").out)
    deltas = {each["metric"]: each["delta"] for each in report["points"][0]["metrics"]}
    assert (deltas[BYTES], deltas[RATE], deltas[HITS]) == (1.0, -0.5, 0.0)


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
