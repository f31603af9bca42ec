"""Several host processes joined by JAX: what each measures, and what one failure does to all."""

import time

import pytest

pytestmark = pytest.mark.slow

SAVE_RESTORE = """
suite_name: processes
num_repeats: 2
execution: {{processes: {processes}, timeout_s: 60}}
checkpoint_config:
  spec:
    sharded: {{dtype: bfloat16, shape: [256, 128], sharding: [x]}}
    replicated: {{dtype: float32, shape: [64]}}
    step: int
mesh_config: {{mesh_axes: [x], ici_parallelism: {{x: {devices}}}}}
benchmarks: [{{generator: save_restore, options: {{}}}}]
"""

MISHAP = """
suite_name: mishap
execution: {{processes: 2, timeout_s: {timeout_s}, retries: 0, warmups: 0}}
checkpoint_config: {{spec: {{w: {{dtype: float32, shape: [8, 4]}}}}}}
mesh_config: {{mesh_axes: [x], ici_parallelism: {{x: 2}}}}
benchmarks:
  - {{generator: misbehaving.Misbehaving, options: {{act: {act}, on_host: 1}}}}
  - {{generator: misbehaving.Misbehaving, options: {{act: behave}}}}
"""


@pytest.mark.parametrize("processes", [2, 4])
def test_every_host_leaves_a_record_and_verifies_its_shards(suite_run, processes):
    run = suite_run(SAVE_RESTORE.format(processes=processes, devices=2 * processes))
    code, output = run.run()
    assert code == 0, output
    for repeat in range(2):
        records = run.host_records(repeat)
        assert sorted(records) == list(range(processes))
        for record in records.values():
            assert record["num_hosts"] == processes
            assert record["state"]["verified"] is True
            assert record["provenance"]["devices"]["count"] == 2 * processes
            assert {s["operation"] for s in record["samples"]} >= {"save", "load"}


@pytest.mark.parametrize(
    ("act", "kind"), [("raise", "ValueError"), ("kill", "WorkerDied"), ("hang", "Timeout")]
)
def test_defects_26_and_31_one_host_ends_the_repeat_for_all_and_the_next_point_is_healthy(
    suite_run, act, kind
):
    run = suite_run(MISHAP.format(act=act, timeout_s=8))
    started = time.monotonic()
    code, output = run.run()
    assert code == 1
    assert time.monotonic() - started < 60
    records = run.host_records(0, act=act)
    types = {record["error"]["type"] for record in records.values()}
    assert types == {kind, "PeerFailed"}
    # A host that waits for a hanging one is as late as that one, so either may be named.
    assert act == "hang" or records[1]["error"]["type"] == kind
    assert kind in output
    healthy = run.host_records(0, act="behave")
    assert {record["status"] for record in healthy.values()} == {"passed"}


def test_an_unmet_need_of_all_hosts_keeps_their_workers(suite_run):
    text = MISHAP.format(act="need", timeout_s=60).replace("retries: 0", "retries: 2")
    run = suite_run(text.replace("execution:", "num_repeats: 3\nexecution:"))
    code, _ = run.run()
    assert code == 1
    errors = [one["error"] for one in run.host_records(1, act="need").values()]
    assert [error["type"] for error in errors] == ["UnmetNeed"] * 2
    workers = {
        tuple(record["notes"]["process"])
        for repeat in range(3)
        for record in run.host_records(repeat, act="behave").values()
    }
    assert len(workers) == 2


def test_what_the_healthy_host_measured_is_kept(suite_run):
    run = suite_run(MISHAP.format(act="kill", timeout_s=60))
    run.run()
    records = run.host_records(0, act="kill")
    assert {s["operation"] for s in records[0]["samples"]} >= {"before"}


def test_a_mesh_that_the_processes_cannot_share_evenly_is_skipped(suite_run):
    text = SAVE_RESTORE.format(processes=2, devices=3).replace("[256, 128]", "[255, 128]")
    run = suite_run(text)
    code, output = run.run()
    assert code == 1
    assert run.statuses() == ["skipped"] * 2
    assert "needs 3 devices" in output


TRAINING = """
suite_name: training
num_repeats: 3
execution: {processes: 4, timeout_s: 60, retries: 0, warmups: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [512, 128], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 8}}
benchmarks: [{generator: train_interference, options: {steps_before: 3, steps_after: 3}}]
"""


def test_four_processes_train_beside_their_save(suite_run):
    run = suite_run(TRAINING)
    code, output = run.run()
    assert code == 0, output
    assert all(record["state"]["verified"] for record in run.host_records(2).values())
