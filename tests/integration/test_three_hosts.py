"""Three hosts with addresses of their own, and real workers: what they leave, and a verdict."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.cluster import Hosts
from tests.support.namespaces import Lab, why_not
from tests.support.processes import REAL_CLI, run_cli

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(bool(why_not()), reason=f"no network namespaces: {why_not()}"),
]

SIZE = 3
HERE = Path(__file__).parent
# Threads of Orbax and TensorStore decide of which operation these tell: a save of this size may
# end between its blocking part and the wait for it, and then they tell of neither.
_OF_THREADS = ("2_save_breakdown/", "6_tensorstore/", "4_throughput/save_", "5_inventory/save_")
SAVES = """
suite_name: three
num_repeats: 2
execution: {processes: 3, retries: 0}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 3}}
checkpoint_config:
  spec:
    sharded: {dtype: float32, shape: [768, 256], sharding: [x, null]}
    replicated: {dtype: float32, shape: [64]}
benchmarks: [{generator: save_restore, options: {use_ocdbt: [true, false]}}]
"""
SLOWER = """
suite_name: slower
execution: {retries: 1, timeout_s: 120}
gate: {lives: always, looks: [16]}
benchmarks: [{generator: steady.Steady, options: {}}]
arms: {candidate: {options: {save_s: 0.06}}}
"""


def on_three_hosts(folder, command, suite, *flags, **variables):
    """Runs a command on three hosts, and returns its exit codes and what process 0 said."""
    words = (command, folder / suite, "-o", folder / "hosts", "--no-lock", *flags)
    with Lab(SIZE) as lab, Hosts(folder, *words, size=SIZE, cli=REAL_CLI, lab=lab) as hosts:
        started = [hosts.start(rank, **variables) for rank in range(SIZE)]
        codes = [process.wait(timeout=500) for process in started]
        left = lab.processes()
    assert left == []
    return codes, hosts.said(0)


def records(run):
    return [
        json.loads(path.read_text()) for path in sorted(run.glob("records/*/repeat_*/host_*.json"))
    ]


def files(run):
    """Returns the kinds of files of a run: numbers and ids of processes differ."""
    names = (str(path.relative_to(run)) for path in run.rglob("*") if path.is_file())
    kept = (name for name in names if not re.search(r"tensorboard|lease|/d/|ocdbt|\.lock", name))
    return Counter(re.sub(r"[0-9a-f]{12,}", "ID", name) for name in kept)


def kinds(record):
    """Returns what a record has, without the values."""
    return {
        "fields": sorted(record),
        "samples": Counter(
            (one["operation"], one.get("index"), one["metric"], one["unit"])
            for one in record["samples"]
            if not one["metric"].startswith(_OF_THREADS)
        ),
        "state": record["state"],
        "provenance": sorted(record["provenance"]),
        "devices": record["provenance"]["devices"],
        "status": record["status"],
        "which": (record["point_id"], record["repeat"], record["host"], record["num_hosts"]),
    }


def test_three_hosts_leave_what_three_processes_of_one_machine_leave(tmp_path):
    (tmp_path / "suite.yaml").write_text(SAVES)
    codes, said = on_three_hosts(tmp_path, "run", "suite.yaml", "--no-limits")
    assert codes == [0, 0, 0], said
    alone = tmp_path / "alone"
    done = run_cli("run", tmp_path / "suite.yaml", "-o", alone, "--no-limits", "--no-lock")
    assert done.returncode == 0, done.stdout + done.stderr
    ours, theirs = (list(map(kinds, records(tmp_path / name))) for name in ("hosts", "alone"))
    assert len(ours) == 2 * 2 * SIZE
    assert ours == theirs
    assert files(tmp_path / "hosts") == files(alone)
    names = {
        (one["host"], one["provenance"]["host"]["name"]) for one in records(tmp_path / "hosts")
    }
    assert names == {(host, f"ob{host}") for host in range(SIZE)}


@pytest.mark.extended
def test_a_comparison_with_lives_ends_in_its_verdict_after_as_many_operations_as_it_should(
    tmp_path,
):
    (tmp_path / "suite.yaml").write_text(SLOWER)
    codes, said = on_three_hosts(tmp_path, "ab", "suite.yaml", PYTHONPATH=str(HERE))
    assert codes == [3, 3, 3], said
    verdicts = json.loads((tmp_path / "hosts" / "verdicts.json").read_text())
    (point,) = verdicts["points"]
    assert point["word"] == "REGRESSION"
    assert (point["design"]["workers"], point["design"]["operations_per_life"]) == ("lives", 2)
    blocks = point["blocks"]
    assert blocks in (4, 7)  # the last look is at stalls, which a busy machine may have
    found = records(tmp_path / "hosts")
    per_arm = Counter((one["arm"], one["host"]) for one in found)
    arms = ("baseline", "candidate")
    assert per_arm == {(arm, host): 4 * blocks for arm in arms for host in range(SIZE)}
    lives = {(one["block"], one["life"], one["host"]): one["worker"] for one in found}
    assert len(lives) == len(set(lives.values())) == 4 * blocks * SIZE
    assert {one["num_hosts"] for one in found} == {SIZE}
    assert all(one["attempts"] == [] for one in found)
