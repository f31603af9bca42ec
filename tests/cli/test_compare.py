"""`orbax-bench compare`."""

import dataclasses
import json
import math
import random
import re
import shutil

import pytest
from orbax.checkpoint._src.testing.benchmarks.core.baseline import Baseline, BaselineRecorder

from orbax_bench_core.exit_codes import Exit
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
from tests.support.shown import next_command


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


def test_a_run_never_passes_against_itself(orbax_bench, make_separate_run, tmp_path):
    registry = tmp_path / "reg"
    for day in range(6):
        run = make_separate_run(day, repeats=12).root
        assert orbax_bench("baseline", "capture", registry, run, "--label", f"v{day}").code == 0
    against = orbax_bench("compare", registry / "v4", run)
    assert (against.code, "PASS" in against.out) == (0, True)
    outcome = orbax_bench("compare", registry / "v5", run)
    assert "PASS" not in outcome.out
    assert "? INCONCLUSIVE: saves were not judged: the baseline is this run itself" in outcome.out


def test_a_baseline_without_a_common_point_was_not_compared(
    orbax_bench, make_separate_run, make_point, tmp_path
):
    before = make_separate_run(0, point=make_point(options={"use_ocdbt": True}))
    after = make_separate_run(1, point=make_point(options={"use_ocdbt": False}))
    assert orbax_bench("baseline", "capture", tmp_path / "reg", before.root, "--promote").code == 0
    outcome = orbax_bench("compare", tmp_path / "reg", after.root)
    assert outcome.code == 2
    assert "have no point in common, so that nothing was compared" in outcome.err


def test_where_times_are_too_noisy_cpu_times_decide_if_they_are_named(orbax_bench, make_paired_run):
    run = make_paired_run(0, 1.25, blocks=10, sigma=0.6, cpu_sigma=0.03)
    wall = orbax_bench("compare", run.root)
    assert wall.code == Exit.INCONCLUSIVE
    assert "(slower)" in orbax_bench("compare", run.root, "--details").out
    for rule in ("primary=[save:cpu]", "primary=[save:cpu, load]"):
        named = orbax_bench("compare", run.root, "--rule", rule, "--json")
        (point,) = json.loads(named.out)["points"]
        found = {each["operation"]: each for each in point["operations"]}
        assert (found["save:cpu"]["primary"], found["save"]["primary"]) == (True, False)
        assert point["word"] == "REGRESSION"
        assert 1 < found["save:cpu"]["verdict"]["low"] < 1.25 < found["save:cpu"]["verdict"]["high"]


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
    said = "saves stall: 10 of 40 operations stalled, 0 of the baseline"
    outcome = orbax_bench("compare", run.root, "--html", page)
    assert outcome.code == 3
    assert said in " ".join(outcome.out.split())
    assert said in page.read_text().replace("\xa0", " ")
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
    said = " ".join(outcome.out.split())
    assert "3 of 3 slower than all 3 of the baseline" in said
    assert "ruled out at the 5 % level" in said
    assert "95 % interval" not in said  # so few operations have none
    assert "the 1 % level needs 4 more of the candidate or 5 on each side" in said
    enough = make_separate_run(2, 5.8, repeats=7).root
    outcome = orbax_bench("compare", before, enough)
    assert (outcome.code, outcome.err) == (3, "")
    assert "REGRESSION" in outcome.out
    said = " ".join(outcome.out.split())
    assert "7 of 7 slower than all 3 of the baseline" in said
    assert "no past runs say how far two runs differ" in said
    assert "runs of the same differ by less" in said


def test_a_baseline_at_its_first_use_ends_with_the_code_of_a_regression(
    orbax_bench, make_separate_run, tmp_path
):
    registry, after = tmp_path / "reg", make_separate_run(1, 5.8).root
    captured = orbax_bench("baseline", "capture", registry, make_separate_run(0).root, "--promote")
    assert captured.code == 0
    outcome = orbax_bench("compare", registry, after)
    assert outcome.code == 3
    assert "6 of 6 slower than all 6" in " ".join(outcome.out.split())
    # 2x would be no news of two runs about which nothing is known.
    outcome = orbax_bench("compare", registry, make_separate_run(2, 1.8).root)
    assert (outcome.code, "INCONCLUSIVE" in outcome.out) == (0, True)
    assert re.search(r"\+\d+ %, 6 of 6 slower than all 6", " ".join(outcome.out.split()))


def test_the_answer_fits_a_terminal_of_80_columns_and_details_have_the_metrics(
    orbax_bench, arms, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    said = orbax_bench("compare", arms.root).out
    assert len(said.splitlines()) <= 20
    assert BYTES not in said
    monkeypatch.setenv("COLUMNS", "160")
    assert BYTES in orbax_bench(*next_command(said)).out


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
    assert "no test can be made" in said
    assert "REGRESSION" not in said
    assert len(done.out.splitlines()) < 20
    said = " ".join(orbax_bench("compare", stored(), run.root, "--details").out.split())
    assert "500 ms, 0 1 s, 6 +100 % – lower" in said
    assert "neither its samples nor their number, so that no test can be made" in said
    assert "Of a baseline without repeats only means are known" in said


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
    assert "-50 %" in orbax_bench("compare", file, run.root, "--details").out


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
