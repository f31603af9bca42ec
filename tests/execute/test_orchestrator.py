"""What becomes of a sweep when its points misbehave."""

import pytest

pytestmark = pytest.mark.slow

SUITE = """
suite_name: mishaps
num_repeats: {repeats}
execution: {{retries: {retries}, timeout_s: {timeout_s}, warmups: {warmups}}}
checkpoint_config: {{spec: {{w: {{dtype: float32, shape: [8, 4]}}}}}}
benchmarks:
  - generator: misbehaving.Misbehaving
    options: {{act: [{acts}], only_once: {only_once}}}
"""


def suite(*acts, repeats=1, retries=0, timeout_s=60, warmups=0, only_once=False):
    return SUITE.format(
        acts=", ".join(acts),
        repeats=repeats,
        retries=retries,
        timeout_s=timeout_s,
        warmups=warmups,
        only_once=str(only_once).lower(),
    )


def operations(record):
    return {sample["operation"] for sample in record["samples"]}


def test_every_mishap_is_a_failed_record_and_the_sweep_goes_on(suite_run):
    acts = ("raise", "exit", "kill", "segfault", "return_none", "corrupt", "behave")
    run = suite_run(suite(*acts))
    code, output = run.run()
    records = {name.split("/")[0]: record for name, record in run.records().items()}
    assert code == 1
    assert {act: records[act]["status"] for act in acts} == {
        **dict.fromkeys(acts, "failed"),
        "behave": "passed",
    }
    errors = {act: records[act]["error"] for act in acts[:-1]}
    assert {act: error["type"] for act, error in errors.items()} == {
        "raise": "ValueError",
        "exit": "SystemExit",
        "kill": "WorkerDied",
        "segfault": "WorkerDied",
        "return_none": "TypeError",
        "corrupt": "VerificationError",
    }
    assert "SIGKILL" in errors["kill"]["message"]
    assert "SIGSEGV" in errors["segfault"]["message"]
    assert "return TestResult(metrics=metrics)" in errors["return_none"]["message"]
    assert "restored values differ" in errors["corrupt"]["message"]
    assert "raised on purpose" in errors["raise"]["traceback"]
    assert "Traceback" not in output


@pytest.mark.parametrize("act", ["raise", "kill"])
def test_defect_25_what_was_measured_before_a_failure_is_kept(suite_run, act):
    run = suite_run(suite(act))
    run.run()
    assert "before" in operations(run.records()[f"{act}/repeat_0"])


def test_a_hanging_repeat_is_stopped_after_its_timeout(suite_run):
    run = suite_run(suite("hang", "behave", timeout_s=6))
    code, output = run.run()
    assert code == 1
    record = run.records()["hang/repeat_0"]
    assert record["error"]["type"] == "Timeout"
    assert record["duration_s"] < 60
    assert "misbehaving.py" in record["error"]["traceback"]  # where it stood
    assert run.records()["behave/repeat_0"]["status"] == "passed"
    assert "timeout_s = 6" in output


def test_a_retry_that_passes_keeps_the_failed_attempt(suite_run):
    run = suite_run(suite("kill", retries=1, only_once=True))
    code, _ = run.run()
    record = run.records()["kill/repeat_0"]
    assert (code, record["status"]) == (0, "passed")
    [attempt] = record["attempts"]
    assert attempt["error"]["type"] == "WorkerDied"
    assert {sample["operation"] for sample in attempt["samples"]} == {"before"}


def processes(run, act):
    """The worker of each repeat, in the order of the repeats."""
    records = sorted(run.records().items())
    return [one["notes"]["process"] for name, one in records if name.startswith(f"{act}/")]


@pytest.mark.parametrize("warmups", [0, 1])
def test_an_unmet_need_is_one_line_and_is_not_tried_again(suite_run, warmups):
    run = suite_run(suite("need", retries=2, warmups=warmups))
    code, output = run.run()
    record = run.records()["need/repeat_0"]
    assert (code, record["status"], record["attempts"]) == (1, "failed", [])
    assert record["error"] == {
        "type": "UnmetNeed",
        "message": "this needs a machine of another kind",
        "traceback": "",
    }
    assert "Traceback" not in output
    assert len(list(run.directory.glob("records/*/warmup_*"))) == warmups


@pytest.mark.parametrize("warmups", [0, 1])
def test_an_unmet_need_does_not_cost_the_warm_worker(suite_run, warmups):
    run = suite_run(suite("need", "behave", repeats=3, warmups=warmups))
    run.run()
    assert len(processes(run, "behave")) == 3
    assert len(set(map(tuple, processes(run, "behave")))) == 1


def test_a_need_that_shows_late_costs_the_worker_but_no_retry(suite_run):
    run = suite_run(suite("need_late", "behave", repeats=3, retries=1))
    run.run()
    assert run.records()["need_late/repeat_1"]["attempts"] == []
    assert len(set(map(tuple, processes(run, "behave")))) > 1


def test_running_again_finishes_only_what_failed(suite_run):
    run = suite_run(suite("kill", "behave", repeats=2, only_once=True))
    assert run.run()[0] == 1
    before = run.record_bytes()
    statuses = {name: record["status"] for name, record in run.records().items()}
    assert sorted(statuses.values()) == ["failed", "passed", "passed", "passed"]

    assert run.run()[0] == 0
    after = run.record_bytes()
    failed = [name for name in before if before[name] != after[name]]
    assert len(failed) == 1
    assert all(record["status"] == "passed" for record in run.records().values())


def test_a_failing_warm_up_fails_its_repeat(suite_run):
    run = suite_run(suite("return_none", warmups=1))
    code, _ = run.run()
    assert code == 1
    assert "in a warm-up" in run.records()["return_none/repeat_0"]["error"]["message"]


def test_state_that_a_benchmark_deleted_is_made_again(suite_run):
    run = suite_run(suite("delete", repeats=3))
    assert run.run()[0] == 0


def test_warm_ups_are_recorded_apart_and_leave_no_data(suite_run):
    run = suite_run(suite("behave", warmups=2))
    assert run.run()[0] == 0
    warmups = sorted(path.parent.name for path in run.directory.glob("records/*/warmup_*/*.json"))
    assert warmups == ["warmup_0", "warmup_1"]
    assert [path.name for path in run.directory.glob("Misbehaving_*/*_*")] == ["repeat_0"]
    assert list(run.records()) == ["behave/repeat_0"]


def test_a_mesh_that_does_not_fit_is_listed_as_skipped(suite_run):
    text = suite("behave") + (
        "mesh_configs:\n"
        "  - {mesh_axes: [x], ici_parallelism: {x: 2}}\n"
        "  - {mesh_axes: [x], ici_parallelism: {x: 4}}\n"
    )
    run = suite_run(text)
    code, output = run.run("--devices", "2")
    assert code == 0
    assert run.statuses() == ["passed", "skipped"]
    assert "skipped" in output
    assert "needs 4 devices" in output


def test_nothing_that_fits_is_exit_code_1(suite_run):
    text = suite("behave") + "mesh_config: {mesh_axes: [x], ici_parallelism: {x: 4}}\n"
    code, output = suite_run(text).run("--devices", "2")
    assert code == 1
    assert "Nothing was measured" in output


def test_each_mesh_gets_the_devices_that_it_needs(suite_run):
    text = suite("behave") + (
        "mesh_configs:\n"
        "  - {mesh_axes: [x], ici_parallelism: {x: 2}}\n"
        "  - {mesh_axes: [x], ici_parallelism: {x: 4}}\n"
    )
    run = suite_run(text)
    assert run.run()[0] == 0
    logs = sorted(path.name for path in (run.directory / "logs").iterdir())
    assert logs == ["worker_2_devices.log", "worker_4_devices.log"]
