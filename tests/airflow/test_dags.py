"""Task groups in a real Airflow, which has an environment of its own."""

import functools
import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.airflow import Airflow
from tests.support.command_lines import parse
from tests.support.nights import drill
from tests.support.processes import ROOT, run_cli, wait_until
from tests.support.webhook import webhook  # noqa: F401 - a fixture

pytestmark = pytest.mark.nightly

SUITE = """
suite_name: nightly
num_repeats: 2
execution: {{retries: 0, warmups: 0}}
gate: {{looks: [10], margin: 0.1, seed: 1}}
checkpoint_config: {{spec: {{a: {{dtype: float32, shape: [8]}}}}}}
benchmarks: [{{generator: tests.support.scripted.Scripted, options: {options}}}]
{arms}
"""


@pytest.fixture(scope="module")
def airflow(tmp_path_factory):
    return Airflow.made(tmp_path_factory.mktemp("home"))


@pytest.fixture
def faults(tmp_path):
    """A folder with the suites, and a command whose workers are fakes."""
    for name, options, arms in (
        ("bad", "{save: 1}", ""),
        ("lost", "{save_s: [0.01, 0.02]}", ""),
        ("few", "{}", ""),
        ("many", "{save_s: [0.01, 0.02, 0.03, 0.04, 0.05]}", ""),
        ("slower", "{}", "arms: {candidate: {options: {save_s: 0.03}}}"),
        ("same", "{}", "arms: {}"),
    ):
        (tmp_path / f"{name}.yaml").write_text(SUITE.format(options=options, arms=arms))
    bench = tmp_path / "fake-bench"
    # A node that dies with its last point: the step is killed whenever it is tried.
    planned = tmp_path / "lost" / "batches" / "planned.json"
    bench.write_text(
        "#!/bin/sh\n"
        "for last; do :; done\n"
        f"""case "$*" in *finish*{tmp_path}/unfinished*) kill -9 $$;; esac\n"""
        f"""case "$*" in *run-sweep-point*{tmp_path}/lost*)\n"""
        f"""grep '^ "' "{planned}" | tail -1 | grep -q "$last" && kill -9 $$;; esac\n"""
        f'[ -f "{tmp_path}/machine" ] && export MACHINE="$(cat "{tmp_path}/machine")"\n'
        f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m tests.support.fake_cli "$@"\n'
    )
    bench.chmod(0o755)
    return tmp_path


def test_the_example_measures_a_sweep(airflow, tmp_path):
    states, done = airflow.test(
        "checkpoint_sweep",
        ROOT / "examples" / "airflow",
        ORBAX_BENCH=str(Path(sys.executable).with_name("orbax-bench")),
        ORBAX_BENCH_RUNS=str(tmp_path),
    )
    assert done.returncode == 0, done.stdout
    assert set(states.values()) == {"success"}
    [run] = tmp_path.glob("sweep-*")
    assert re.fullmatch(r"sweep-manual__[-0-9]{10}T[.0-9]+_0000", run.name)
    assert json.loads((run / "run.json").read_text())["status"] == "complete"
    assert (run / "report.html").exists()


@pytest.mark.extended
def test_a_bad_suite_is_not_tried_again(airflow, faults):
    states, done = airflow.test("bad_suite", ROOT / "tests/airflow/dags", FAULTS=str(faults))
    assert states["plan", -1] == "failed"
    assert "plan-sweep ended with exit code 2" in done.stdout
    assert "bad.yaml" in done.stdout
    assert states["finish", -1] == "success"
    assert "the suite was refused" in (faults / "bad" / "ending.md").read_text()
    assert done.stdout.count("starting task_id=sweep.plan") == 1
    assert states["measure", -1] == "upstream_failed"
    assert airflow.rows("select state from dag_run where dag_id = 'bad_suite'") == [("failed",)]


@pytest.mark.extended
def test_a_folder_that_holds_another_run_is_refused_and_left_as_it_is(airflow, faults):
    dags = ROOT / "tests/airflow/dags"
    states, _ = airflow.test("one_folder", dags, FAULTS=str(faults))
    assert set(states.values()) == {"success"}
    everything = list((faults / "one").rglob("*"))
    files = [path for path in everything if path.is_file()]
    kept = {path: path.read_bytes() for path in files if path.parent.name != "leases"}
    _, done = airflow.test("one_folder", dags, day=23, FAULTS=str(faults))
    assert "plan-sweep ended with exit code 2" in done.stdout
    assert "give each run a folder of its own" in done.stdout
    assert {path: path.read_bytes() for path in kept} == kept
    new = {path.name for path in (faults / "one").rglob("*")} - {path.name for path in everything}
    assert not [name for name in new if name.startswith(("ending", "report"))]
    states = "select state from dag_run where dag_id = 'one_folder' order by logical_date"
    assert airflow.rows(states) == [("success",), ("failed",)]


def test_tasks_are_as_many_as_airflow_maps_and_a_number_that_is_not_is_refused(airflow, faults):
    dags, limit = ROOT / "tests/airflow/dags", {"AIRFLOW__CORE__MAX_MAP_LENGTH": "3"}
    states, done = airflow.test("many_fit", dags, FAULTS=str(faults), **limit)
    assert set(states.values()) == {"success"}, done.stdout
    assert 1 <= len([task for task, _ in states if task == "measure"]) <= 3
    states, done = airflow.test("many_do_not_fit", dags, FAULTS=str(faults), **limit)
    assert (states["plan", -1], states["measure", -1]) == ("failed", "upstream_failed")
    assert "5 points in 5 steps of 1: the engine takes 3; give 2 points" in done.stdout


def test_a_run_whose_last_task_dies_is_told_of_by_the_dag(airflow, faults, webhook):
    dags, address = ROOT / "tests/airflow/dags", {"ORBAX_BENCH_NOTIFY": webhook.url}
    states, done = airflow.test("finish_dies", dags, FAULTS=str(faults), **address)
    assert states["finish", -1] == "failed"
    [(_, message)] = webhook.posted
    assert (message["state"], message["suite"]) == ("FAILED", str(faults / "bad.yaml"))
    assert re.search(r"/unfinished/manual__[-0-9]{10}T[.0-9]+_0000$", message["run_directory"])
    assert "could not report" in message["lines"][0]
    assert "S3CR3T" not in done.stdout + done.stderr
    webhook.posted.clear()
    airflow.test("bad_suite", dags, FAULTS=str(faults), **address)
    assert webhook.states == ["FAILED"]  # by `finish` alone


@pytest.mark.extended
def test_a_lost_point_leaves_a_report_and_a_failed_run(airflow, faults):
    states, done = airflow.test("lost_point", ROOT / "tests/airflow/dags", FAULTS=str(faults))
    assert (faults / "lost" / "report.html").exists(), done.stdout
    assert ": incomplete" in (faults / "lost" / "ending.md").read_text()
    lost = {index: state for (task, index), state in states.items() if task == "measure"}
    assert sorted(lost.values()) == ["failed", "success"]
    assert states["report", -1] == "upstream_failed"
    assert states["finish", -1] == "success"
    assert airflow.rows("select state from dag_run where dag_id = 'lost_point'") == [("failed",)]


def test_a_regression_fails_at_once_and_its_verdict_is_an_event(airflow, faults):
    states, done = airflow.test("slower", ROOT / "tests/airflow/dags", FAULTS=str(faults))
    assert states["compare", -1] == "success", done.stdout
    assert (states["enforce", -1], states["finish", -1]) == ("failed", "success")
    assert airflow.rows("select state from dag_run where dag_id = 'slower'") == [("failed",)]
    assert (faults / "slower" / "ending.md").read_text().startswith("# ✗ REGRESSION")
    assert "enforce-verdict ended with exit code 3" in done.stdout
    assert json.loads((faults / "slower" / "verdicts.json").read_text())["points"]
    assert airflow.rows(
        "select uri, event.extra from asset_event event join asset on asset.id = event.asset_id"
    ) == [("verdict", '{"returned": "REGRESSION"}')]


SLOWER = "arms: {candidate: {options: {sleeps_s: 0.02}}}"
HANGS = "{act: hang, act_at: '3'}"
NIGHTS = (
    ({}, "PASS"),
    (None, "FAILED"),  # the machine is gone, and is replaced
    ({"machine": "machine-2"}, "PASS"),
    ({"machine": "machine-2", "dag": "bounded_steps", "options": HANGS}, "FAILED"),
    ({"machine": "machine-2", "arms": SLOWER}, "REGRESSION"),
    ({"machine": "machine-2", "arms": SLOWER}, None),
    ({"machine": "machine-2", "dag": "bounded_run", "options": HANGS}, "FAILED"),
    ({"machine": "machine-2"}, "PASS"),
)


@pytest.mark.extended
def test_nights_by_airflow_tell_what_people_want_to_hear(airflow, faults, webhook, capsys):
    """Nights that hang, are missed and are slower; `make nights` shows the notifications."""
    address = {"ORBAX_BENCH_NOTIFY": webhook.url}

    def make(dag="nightly", machine="machine-1", options="{}", arms="arms: {}"):
        (faults / "nightly.yaml").write_text(SUITE.format(options=options, arms=arms))
        (faults / "machine").write_text(machine)
        state = run(dag)
        assert state == ("success" if (dag, arms) == ("nightly", "arms: {}") else "failed")
        if dag == "bounded_run":  # its DAG tells, after the run has ended
            wait_until(lambda: webhook.posted)
            assert "of Airflow failed (timed_out)" in str(webhook.posted[0][1]["lines"])

    watch = functools.partial(run_cli, **address)
    dags, given = ROOT / "tests/airflow/dags", {"FAULTS": str(faults), "HEARTBEAT_S": "1"}
    with airflow.serving(dags, **given, **address) as run:
        told = drill(NIGHTS, make, watch, faults / "nights", webhook, capsys)
    assert told == [expected for _, expected in NIGHTS]
    measured = "logs/dag_id=bounded_steps/run_id=*/task_id=regression.measure/map_index=0/*.log"
    [log] = airflow.home.glob(measured)
    heartbeat = r"orbax-bench: \d of at most \d+ operations, at most [^ ]+ \w+ left"
    assert re.search(heartbeat, log.read_text())


def test_exit_codes_say_whether_trying_again_can_help(airflow):
    done = airflow.run("python", Path(__file__).with_name("outcomes.py"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.strip().splitlines()[-1])
    tried_again = {"1", "75", "130", "137", "-9"}
    for outcomes in (found["codes"], found["pods"]):
        for code, outcome in outcomes.items():
            good = "succeeds" if code == "0" else "fails at once"
            assert outcome == ("is tried again" if code in tried_again else good), code
    for words in found["started"]:
        parse(["step", *words])
    assert {words[0] for words in found["started"]} > {
        "enforce-verdict",
        "publish-baseline",
        "finish",
    }
    assert {tuple(words[-2:]) for words in found["started"]} == {
        ("--result", "/airflow/xcom/return.json")
    }
    assert found["variables"] == {"A": "b", "ORBAX_BENCH_IMAGE": "image@sha256:0"}
    assert found["waits"] == [[True, 1800, 1800], [False, 60, 60]]
    assert found["at_once"] == {"measures": 1, "in_pods": 4}
