"""Sweeps with points that misbehave, and what is done while workers start."""

import pytest

from orbax_bench_core.execute import CannotRecord
from tests.support.control_groups import little_memory
from tests.support.fake_cli import fake_bench
from tests.support.scripted import NAME as SCRIPTED

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


@pytest.mark.nightly
def test_every_mishap_is_a_failed_record_and_the_sweep_goes_on(suite_run):
    acts = (
        *("raise", "exit", "generator_exit", "kill", "segfault", "return_none", "corrupt"),
        *("need", "behave"),
    )
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
        "generator_exit": "GeneratorExit",
        "kill": "WorkerDied",
        "segfault": "WorkerDied",
        "return_none": "TypeError",
        "corrupt": "VerificationError",
        "need": "UnmetNeed",
    }
    assert "SIGKILL" in errors["kill"]["message"]
    assert "SIGSEGV" in errors["segfault"]["message"]
    assert "return TestResult(metrics=metrics)" in errors["return_none"]["message"]
    assert "restored values differ" in errors["corrupt"]["message"]
    assert "raised on purpose" in errors["raise"]["traceback"]
    assert "Traceback" not in output


def test_a_worker_that_the_kernel_killed_for_memory_says_at_which_limit(suite_run):
    run = suite_run(suite("fill", "kill"))
    with little_memory(1200 * 2**20) as inside:
        run.run(inside=inside)
    said = {name.split("/")[0]: one["error"]["message"] for name, one in run.records().items()}
    limit = "memory ran out: the kernel killed it at the limit of its container, at 1,200 MiB"
    assert limit in said["fill"]
    assert "memory did not run out meanwhile" in said["kill"]


def operations(record):
    return {sample.operation for sample in record.samples}


@pytest.mark.parametrize("act", ["raise", "die"])
def test_defect_25_what_was_measured_before_a_failure_is_kept(orchestrate, act):
    run = orchestrate(act)
    run.run()
    assert operations(run.record(act)) == {"save"}


def test_a_hanging_repeat_is_stopped_after_its_timeout(orchestrate):
    run = orchestrate("hang", "behave")
    run.run(timeout_s=5)  # of which a worker on a busy machine takes some to start
    record = run.record("hang")
    assert record.error.type == "Timeout"
    assert "fake_worker.py" in record.error.traceback  # where it stood
    assert "timeout_s = 5" in record.error.message
    assert run.record("behave").status == "passed"


def test_a_retry_that_passes_keeps_the_failed_attempt(orchestrate):
    run = orchestrate("die", only_once=True)
    run.run(retries=1)
    record = run.record("die")
    assert record.status == "passed"
    (attempt,) = record.attempts
    assert attempt.error.type == "WorkerDied"
    assert operations(attempt) == {"save"}


@pytest.mark.parametrize("act", ["die_last", "die_passed"])
def test_what_passed_on_one_host_is_kept_where_its_repeat_is_tried_again(orchestrate, act):
    run = orchestrate(act, processes=2, devices=2, on_host=1, first_attempts=True)
    run.run(retries=1)
    records = run.repeat(act)
    assert [records[host].status for host in (0, 1)] == ["passed", "passed"]
    kinds = {host: [each.error.type for each in records[host].attempts] for host in (0, 1)}
    assert kinds == {0: ["PeerFailed"], 1: ["WorkerDied"]}
    through = 1 if act == "die_passed" else 0
    assert operations(records[through].attempts[0]) == {"save", "load"}


def test_a_retry_that_fails_again_keeps_each_attempt(orchestrate):
    run = orchestrate("raise")
    run.run(retries=2)
    record = run.record("raise")
    assert record.status == "failed"
    assert [attempt.error.type for attempt in record.attempts] == ["ValueError"] * 2


@pytest.mark.parametrize("warmups", [0, 1])
def test_an_unmet_need_is_one_line_and_is_not_tried_again(orchestrate, warmups):
    run = orchestrate("need")
    run.run(retries=2, warmups=warmups)
    record = run.record("need")
    assert (record.status, record.attempts) == ("failed", ())
    assert record.error.model_dump() == {
        "type": "UnmetNeed",
        "message": "this needs a machine of another kind",
        "traceback": "",
    }
    assert len(list(run.directory.glob("records/*/warmup_*"))) == warmups


def test_running_again_finishes_only_what_failed(orchestrate):
    run = orchestrate("die", "behave", only_once=True)
    run.run(repeats=2)
    before = run.record_bytes()
    statuses = [run.record(act, i).status for act in ("die", "behave") for i in range(2)]
    assert sorted(statuses) == ["failed", "passed", "passed", "passed"]

    run.run(repeats=2)
    after = run.record_bytes()
    assert len([name for name in before if before[name] != after[name]]) == 1
    assert {run.record("die", i).status for i in range(2)} == {"passed"}


def test_a_failing_warm_up_fails_its_repeat(orchestrate):
    run = orchestrate("raise", in_warmup=True)
    run.run(warmups=1)
    assert run.record("raise").error.message == "in a warm-up: raised on purpose"


def test_a_record_that_cannot_be_written_ends_the_run_and_loses_nothing(orchestrate):
    run = orchestrate("behave", "unrecorded")
    with pytest.raises(CannotRecord, match="No space left on device"):
        run.run(order="sequential")
    assert run.record("behave").status == "passed"
    assert run.repeat("unrecorded") == {}


@pytest.mark.parametrize("keep", [False, True], ids=["deleted", "kept"])
def test_warm_ups_are_recorded_apart_and_only_repeats_leave_data_where_it_is_kept(
    orchestrate, keep
):
    run = orchestrate("behave")
    run.run(warmups=2, repeats=2, keep_data=keep)
    warmups = sorted(path.parent.name for path in run.directory.glob("records/*/warmup_*/*.json"))
    assert warmups == ["warmup_0", "warmup_1"]
    left = sorted(path.name for path in run.directory.glob("Scripted_*/*_*"))
    assert left == (["repeat_0", "repeat_1"] if keep else [])
    assert run.record("behave").status == "passed"


def test_each_mesh_gets_the_devices_that_it_needs(orchestrate):
    run = orchestrate("behave", devices=2)
    run.points += orchestrate("raise", devices=4).points
    run.run()
    logs = sorted(path.name for path in (run.directory / "logs").iterdir())
    assert logs == ["worker_2_devices.log", "worker_4_devices.log"]


def test_a_mesh_that_does_not_fit_is_listed_as_skipped(suite_run):
    text = suite("behave") + (
        "mesh_configs:\n"
        "  - {mesh_axes: [x], ici_parallelism: {x: 2}}\n"
        "  - {mesh_axes: [x], ici_parallelism: {x: 4}}\n"
    )
    run = suite_run(text.replace("misbehaving.Misbehaving", SCRIPTED))
    code, output = run.run("--devices", "2", bench=fake_bench)
    assert code == 0
    assert run.statuses() == ["passed", "skipped"]
    assert "skipped" in output
    assert "needs 4 devices" in output


def test_it_is_done_once_and_before_anything_is_measured(orchestrate):
    run, seen = orchestrate("behave"), []
    run.run(repeats=2, meanwhile=lambda: seen.append(len(run.watched)))
    assert seen == [0]
    assert run.record("behave", repeat=1).status == "passed"


def test_a_worker_that_was_starting_ends_with_an_interrupt(orchestrate):
    def interrupt():
        raise KeyboardInterrupt

    run = orchestrate("behave")
    with pytest.raises(KeyboardInterrupt):
        run.run(meanwhile=interrupt)
    assert not run.watched
