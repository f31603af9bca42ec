"""Every built-in has an example that says what it is for, and those that can run here do."""

import json
from pathlib import Path

import pytest
import yaml

from orbax_bench_core import sweep
from orbax_bench_core.config import parse_suite
from tests.support.processes import run_cli

EXAMPLES = Path(__file__).parents[2] / "examples"
ALL = ["all_builtins", "all_builtins_2_and_4_processes"]
MOST_BYTES = 16 * 2**20
ELSEWHERE = {"lustre", "multihost_dispatchers", "nnx_restore", "snapshotter"}
"""Built-ins that need a file system or a package that a bare installation lacks."""

LARGER = {"save_restore", "train_interference"}
"""Built-ins whose own examples are of a size that shows something."""

SEVERAL_PROCESSES = {
    "emergency_checkpoint_manager",
    "multislice_broadcast",
    "p2p_checkpoint_manager",
}
ONE_PROCESS = {"checkpoint_interval"}


def suites():
    for file in sorted(EXAMPLES.glob("*.yaml")):
        generators = [
            entry["generator"] for entry in yaml.safe_load(file.read_text())["benchmarks"]
        ]
        names = set(map(sweep.benchmark_of, generators))
        if names <= set(sweep.BUILTINS):
            yield file.stem, names


SUITES = dict(suites())


def run_suite(suite, out, *more):
    return run_cli("run", suite, "-o", out, "--no-lock", "--no-limits", *more, COLUMNS="300")


@pytest.mark.parametrize("name", sweep.BUILTINS)
def test_every_built_in_has_an_example(name):
    own = [suite for suite, named in SUITES.items() if name in named and suite not in ALL]
    assert own


@pytest.mark.parametrize(
    "name", sorted(suite for suite, named in SUITES.items() if suite in ALL or not named & LARGER)
)
def test_an_example_fits_a_laptop(name):
    suite = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    loaded = parse_suite(yaml.safe_dump(suite))
    assert all((data.num_bytes or 0) <= MOST_BYTES for data in loaded.suite.checkpoint_configs)


def test_the_two_that_run_all_leave_nothing_out():
    one, several = (SUITES[name] for name in ALL)
    builtins = set(sweep.BUILTINS)
    assert one == builtins - ELSEWHERE - SEVERAL_PROCESSES
    assert several == builtins - ELSEWHERE - ONE_PROCESS


@pytest.mark.slow
def test_built_ins_that_need_one_process_refuse_two_in_a_sentence(tmp_path):
    entries = [
        {"generator": "checkpoint_interval", "options": {}},
        {"generator": "snapshotter", "options": {}},
        {"generator": "v0_cancel", "options": {"perform_cancellation": True}},
        {"generator": "v1_cancel", "options": {"perform_cancellation": True}},
        {"generator": "multihost_dispatchers", "options": {}},
    ]
    several = yaml.safe_load((EXAMPLES / f"{ALL[1]}.yaml").read_text())
    several |= {"execution": {"warmups": 0, "processes": 2}, "benchmarks": entries}
    suite = tmp_path / "refused.yaml"
    suite.write_text(yaml.safe_dump(several))
    run_suite(suite, tmp_path / "out")
    said = {
        record["point_name"].partition("[")[0]: (record["error"] or {}).get("message")
        for path in tmp_path.glob("out/records/*/repeat_0/host_0.json")
        for record in [json.loads(path.read_text())]
    }
    dispatched = said.pop("multihost_dispatchers")
    assert dispatched is None or "orbax-bench[pathways]" in dispatched
    assert len(said) == 4
    assert all(
        text.endswith("here are 2: set processes: 1 under execution") for text in said.values()
    )


SOON = ("--override", "execution.timeout_s=120")
"""Orbax's peer-to-peer manager waited once for a signal that never came: it is tried again."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", ALL)
def test_all_built_ins_pass_and_what_they_restore_is_verified(tmp_path, name):
    pytest.importorskip("torch", reason="needs PyTorch: make torch")
    process = run_suite(EXAMPLES / f"{name}.yaml", tmp_path / "out", *SOON)
    assert process.returncode == 0, process.stdout + process.stderr
    records = [
        json.loads(path.read_text()) for path in tmp_path.glob("out/records/*/repeat_*/*.json")
    ]
    assert {record["status"] for record in records} == {"passed"}
    assert {record["state"]["verified"] for record in records} == {"saved"}
    assert all(record["inventory"]["data"]["files"] for record in records if is_left(record))


def is_left(record):
    """Says whether a repeat leaves a checkpoint; only the first host takes the inventory."""
    leaves_none = ("multislice_broadcast", "deletion=background")
    return record["host"] == 0 and not any(name in record["point_name"] for name in leaves_none)
