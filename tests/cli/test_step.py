"""Steps of a pipeline as commands: what each returns, and the walk through all of them."""

import json

import pytest

from orbax_bench_core.engine import plan_sweep
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.publishing import publish
from orbax_bench_core.records import RunDirectory
from tests.support.disks import fill, small_disk
from tests.support.paired_runs import make_paired_run  # noqa: F401 - fixture
from tests.support.processes import FAKE_CLI, start_cli
from tests.support.webhook import webhook  # noqa: F401 - fixture

SUITE = """
suite_name: steps
num_repeats: 2
benchmarks:
- {generator: tests.support.scripted.Scripted, options: {save_s: [0.1, 0.2]}}
checkpoint_config: {spec: {a: {dtype: float32, shape: [8]}}}
"""


def step(*words, cli=FAKE_CLI):
    """Runs a step; returns its exit code, what it returned, and all that it printed."""
    process = start_cli("step", *words, cli=cli)
    out, _ = process.communicate(timeout=120)
    last = (out.strip().splitlines() or [""])[-1]
    try:
        value = json.loads(last)
    except ValueError:
        value = None
    return process.returncode, value, out


def planned(suite, run):
    """Begins a run; returns the ids of its points."""
    plan_sweep(suite, str(run))
    return [point.id for point in RunDirectory(str(run)).read_info().expansion.points]


@pytest.mark.nightly
@pytest.mark.slow
def test_the_steps_of_a_sweep_leave_a_complete_run(tmp_path):
    suite, run = tmp_path / "suite.yaml", tmp_path / "run"
    suite.write_text(SUITE)
    plan = ("plan-sweep", suite, "-o", run, "--points-per-step", 1)
    code, points, out = step(*plan, "--result", tmp_path / "points")
    assert (code, len(points)) == (0, 2), out
    assert json.loads((tmp_path / "points").read_text()) == points
    (tmp_path / "point").write_text(points[1])
    for point in (points[0], f"@{tmp_path / 'point'}"):
        code, status, out = step("run-sweep-point", point, "-o", run, "--no-limits")
        assert (code, status) == (0, ["passed"]), out
    code, value, out = step("aggregate", "-o", run, "--outputs", tmp_path / "outputs")
    assert (code, value) == (0, []), out
    outputs = json.loads((tmp_path / "outputs").read_text())
    assert outputs["report"]["place"] == str(run / "report.html")
    assert outputs["report"]["metadata"]["digest"].startswith("sha256:")
    assert json.loads((run / "run.json").read_text())["status"] == "complete"
    assert step("generate-checkpoint", suite)[:2] == (0, None)


@pytest.mark.slow
def test_a_step_measures_nothing_on_other_devices_than_it_expects(tmp_path):
    suite, run = tmp_path / "suite.yaml", tmp_path / "run"
    suite.write_text(SUITE.replace("num_repeats: 2", "num_repeats: 1"))
    first, _ = planned(suite.read_text(), run)
    code, _, out = step("run-sweep-point", first, "-o", run, "--no-limits", "--expect", "tpu:v5e:1")
    assert code == Exit.INVALID
    assert "expected tpu:v5e:1, and JAX found 1 x cpu (cpu)" in out
    assert "Traceback" not in out
    assert not list(run.glob("records/*/repeat_*/host_*.json"))


@pytest.mark.slow
def test_a_drill_and_what_enforces_it_are_two_steps(tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        SUITE.replace(
            "num_repeats: 2", "num_repeats: 1\nexecution: {warmups: 0, retries: 0}"
        ).replace("{save_s: [0.1, 0.2]}", "{}")
    )
    words = ("recovery", suite, "-o", tmp_path / "run", "--no-lock")
    code, failed, out = step(*words, "--outputs", tmp_path / "outputs")
    assert (code, failed) == (0, []), out
    outputs = json.loads((tmp_path / "outputs").read_text())
    assert outputs["answer"]["metadata"]["orbax_bench_type"] == "recovery"
    assert outputs["report"]["place"] == str(tmp_path / "run" / "recovery.html")


@pytest.mark.parametrize(
    ("suite", "said"),
    [(SUITE + "num_repeat: 2", "did you mean 'num_repeats'"), (None, "there is no such file")],
)
def test_the_last_step_ends_well_where_no_run_was_begun(orbax_bench, tmp_path, suite, said):
    file, run = tmp_path / "suite.yaml", tmp_path / "run"
    if suite is not None:
        file.write_text(suite)
    done = orbax_bench("step", "finish", "-o", run, "--suite", file, "--status", "Failed")
    assert (done.code, json.loads(done.out.splitlines()[-1])) == (Exit.OK, "FAILED"), done.err
    assert said in done.out + done.err
    assert "refused: :" not in done.out  # a step has the text of a suite, and no file
    assert "FAILED" in (run / "report.html").read_text()


@pytest.mark.parametrize("word", ["Succeeded", "SUCCEEDED"])
def test_the_last_step_takes_the_words_of_every_engine(orbax_bench, make_run, make_record, word):
    run = make_run([make_record(times={"save": 0.5})])
    done = orbax_bench("step", "finish", "-o", run.root, "--status", word)
    assert (done.code, json.loads(done.out.splitlines()[-1])) == (Exit.OK, "PASS"), done.out


def test_a_plan_that_will_fail_is_an_exit_code(orbax_bench, tmp_path):
    words = ("step", "plan-save", "llama-8b@0.01", "--answer", tmp_path / "plan.json")
    done = orbax_bench(*words, "--options", "{save_concurrent_gb: 0.000001}")
    (failure,) = json.loads(done.out)
    assert (done.code, done.err.strip()) == (Exit.FAILED, failure)
    assert json.loads((tmp_path / "plan.json").read_text())[0]["failures"] == [failure]


@pytest.mark.slow
def test_points_that_were_measured_at_the_same_moment_are_named_in_the_report(tmp_path):
    run = tmp_path / "run"
    suite = SUITE.replace("num_repeats: 2", "num_repeats: 1\nexecution: {warmups: 0}")
    points = planned(suite.replace("save_s:", "lasts_s: 2.0, save_s:"), run)
    words = ("-o", run, "--no-limits", "--no-lock")
    together = [start_cli("step", "run-sweep-point", each, *words, cli=FAKE_CLI) for each in points]
    for process in together:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0, out
    publish(RunDirectory(str(run)))
    report = (run / "report.md").read_text()
    assert report.count("1 of 1 repeats were not alone: another point of the run was") == 2


def test_a_run_with_both_arms_is_judged_and_captured(orbax_bench, make_paired_run, tmp_path):
    run = make_paired_run(1, 1.2)
    judged = orbax_bench("step", "compare-baseline", "-o", run.root)
    assert (judged.code, json.loads(judged.out)) == (0, "REGRESSION")
    refused = orbax_bench(
        "step", "enforce-verdict", "REGRESSION", "--verdicts", run.root / "verdicts.json"
    )
    assert refused.code == Exit.REGRESSION
    assert "REGRESSION: " in refused.err
    captured = orbax_bench("step", "publish-baseline", tmp_path / "registry", "-o", run.root)
    assert captured.code == 0, captured.err
    assert list((tmp_path / "registry").rglob(f"*{json.loads(captured.out)}*"))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["PASS"], Exit.OK),
        (["INCONCLUSIVE"], Exit.INCONCLUSIVE),
        (["INCONCLUSIVE", "--allow-inconclusive"], Exit.OK),
        (["REGRESSION"], Exit.REGRESSION),
        (["LEAK"], Exit.REGRESSION),
        (["FINE"], Exit.INVALID),
    ],
)
def test_a_verdict_is_an_exit_code(orbax_bench, words, code):
    assert orbax_bench("step", "enforce-verdict", *words).code == code


@pytest.fixture
def lacking(tmp_path):
    """What `aggregate --result` wrote of a run that lost a step."""
    path = tmp_path / "lacking.json"
    path.write_text('["the step of a left nothing"]')
    return path


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], Exit.FAILED),
        (["PASS"], Exit.FAILED),
        (["INCONCLUSIVE"], Exit.FAILED),
        (["REGRESSION"], Exit.REGRESSION),
    ],
)
def test_what_is_lacking_is_a_failure_unless_something_has_regressed(
    orbax_bench, lacking, words, code
):
    done = orbax_bench("step", "enforce-verdict", *words, "--lacking", lacking)
    assert done.code == code
    assert "the step of a left nothing" in done.err
    assert done.err.startswith("the step") == (code == Exit.FAILED)  # first what decided
    assert "".join(words) in done.err or words == ["PASS"]


def test_a_change_of_state_is_told_by_the_step_that_enforces_it(
    orbax_bench, make_paired_run, webhook, lacking
):
    run = make_paired_run(1, 1.2)
    orbax_bench("step", "compare-baseline", "-o", run.root)
    judged = ("REGRESSION", "--verdicts", run.root / "verdicts.json")
    for _ in range(2):
        done = orbax_bench("step", "enforce-verdict", *judged, "--notify", webhook.url)
        assert done.code == Exit.REGRESSION
    assert webhook.states == ["REGRESSION"]
    assert webhook.posted[0][1]["run_directory"] == str(run.root)
    assert "S3CR3T" not in done.out + done.err
    assert list(run.root.parent.glob("notified-*.json"))


def test_a_run_that_lacks_something_is_told_as_a_failure(
    orbax_bench, make_paired_run, webhook, lacking
):
    run = make_paired_run(0)
    orbax_bench("step", "compare-baseline", "-o", run.root)
    judged = ("PASS", "--verdicts", run.root / "verdicts.json", "--lacking", lacking)
    done = orbax_bench("step", "enforce-verdict", *judged, "--notify", webhook.url)
    assert (done.code, webhook.states) == (Exit.FAILED, ["FAILED"])
    assert webhook.posted[0][1]["lines"][0] == "the step of a left nothing"


def test_a_comparison_that_lost_a_step_is_told_as_a_failure(orbax_bench, make_paired_run, webhook):
    run = make_paired_run(0, blocks=1)
    done = orbax_bench("step", "compare-baseline", "-o", run.root, "--notify", webhook.url)
    assert (done.code, json.loads(done.out)) == (Exit.OK, "INCONCLUSIVE")
    # The step that enforces it knows so too: one night is one state.
    judged = ("INCONCLUSIVE", "--allow-inconclusive", "--verdicts", run.root / "verdicts.json")
    done = orbax_bench("step", "enforce-verdict", *judged, "--notify", webhook.url)
    assert done.code == Exit.OK
    assert webhook.states == ["FAILED"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["enforce-verdict"], "give the verdict"),
        (["enforce-verdict", "PASS", "--notify", "http://127.0.0.1:9/x"], "--verdicts"),
        (["enforce-verdict", "PASS", "--notify", "nonsense"], "no http or https URL"),
        (["enforce-verdict", "PASS", "--verdicts", "{tmp}/none.json"], "there is no such file"),
        (["enforce-verdict", "PASS", "--verdicts", "{tmp}/torn.json"], "torn.json"),
        (["enforce-verdict", "--lacking", "{tmp}/torn.json"], "torn.json"),
        (["plan-sweep", "{tmp}/none.yaml", "-o", "{tmp}/run"], "none.yaml: there is no such file"),
        (["generate-checkpoint", "{tmp}/torn.json"], "error: line 1: the text ends"),
        (["run-sweep-point", "{}", "-o", "{tmp}/run"], "run"),
        (["run-sweep-point", "@{tmp}/none", "-o", "{tmp}/run"], "none: there is no such file"),
        (["aggregate", "-o", "{tmp}/run"], "run"),
        (["study-async", "-o", "{tmp}/run"], "run"),
        (["best", "-o", "{tmp}/run"], "run"),
        (["best", "-o", "{tmp}/run", "--peak-memory", "much"], "is not a size"),
        (["inspect-checkpoint", "{tmp}/none"], "does not exist"),
        (["plan-save", "llama-9b"], "llama-9b"),
        (["plan-save", "gpt2", "--result", "http://h/x"], "local paths and gs:// only"),
        (["plan-save", "gpt2", "--answer", "http://h/x"], "local paths and gs:// only"),
        (["soak", "{tmp}/none.yaml", "-o", "{tmp}/run"], "none.yaml: there is no such file"),
        (["recovery", "{tmp}/none.yaml", "-o", "{tmp}/run"], "there is no such file"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(orbax_bench, tmp_path, words, said):
    (tmp_path / "torn.json").write_text("{")
    done = orbax_bench("step", *(word.replace("{tmp}", str(tmp_path)) for word in words))
    assert done.code == Exit.INVALID
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1


@pytest.mark.nightly
def test_a_finish_for_which_there_is_no_room_tells_and_exits_with_1(
    orbax_bench, make_run, make_record, webhook, monkeypatch, tmp_path
):
    monkeypatch.setenv("ORBAX_BENCH_NOTIFY", webhook.url)
    monkeypatch.setattr("orbax_bench_core.engine.retrying.WAITS_S", (0.0, 0.0))
    with small_disk(tmp_path / "disk", "4m") as disk:
        run = make_run([make_record()], folder="disk/nightly/out")
        fill(disk)
        done = orbax_bench("step", "finish", "-o", run.root, "--status", "SUCCEEDED")
    assert (done.code, webhook.states) == (1, ["PASS"])
    assert "error: cannot write: [Errno 28] No space left on device: " in done.err
