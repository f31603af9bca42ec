"""Task groups in a real Airflow, which has an environment of its own."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_lines import parse

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
AIRFLOW = ("apache-airflow>=3.3,<3.4", "apache-airflow-providers-cncf-kubernetes")
SUITE = """
suite_name: faults
num_repeats: 2
execution: {{retries: 0, warmups: 0}}
gate: {{looks: [10], margin: 0.1}}
checkpoint_config: {{spec: {{a: {{dtype: float32, shape: [8]}}}}}}
benchmarks: [{{generator: tests.support.scripted.Scripted, options: {options}}}]
{arms}
"""


class Airflow:
    """Airflow's environment, with a home of its own."""

    def __init__(self, environment, home):
        self.bin = environment / "bin"
        self.home = home

    def variables(self, **more):
        plain = {name: text for name, text in os.environ.items() if name != "XLA_FLAGS"}
        return plain | {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            **more,
        }

    def run(self, program, *words, **variables):
        return subprocess.run(
            [self.bin / program, *words],
            env=self.variables(**variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )

    def rows(self, query, *values):
        """Returns what Airflow's database has."""
        with contextlib.closing(sqlite3.connect(self.home / "airflow.db")) as database:
            return database.execute(query, values).fetchall()

    def test(self, dag, folder, **variables):
        """Runs a DAG once; returns the states of its tasks, and all that was printed."""
        variables = {"AIRFLOW__CORE__DAGS_FOLDER": str(folder), **variables}
        done = self.run("airflow", "dags", "test", dag, "2026-11-22", **variables)
        query = "select task_id, map_index, state from task_instance where dag_id = ?"
        found = self.rows(query, dag)
        return {(id_.partition(".")[2], index): state for id_, index, state in found}, done


@pytest.fixture(scope="module")
def airflow(tmp_path_factory):
    environment = ROOT / "build" / "airflow"
    uv = [sys.executable, "-m", "uv"]
    if not (environment / "ready").exists():
        shutil.rmtree(environment, ignore_errors=True)
        subprocess.run([*uv, "venv", "--quiet", environment], check=True)
        python = environment / "bin" / "python"
        install = [*uv, "pip", "install", "--quiet", "--python", python]
        subprocess.run([*install, *AIRFLOW], check=True)
        subprocess.run([*install, "--no-deps", "--editable", ROOT], check=True)
        (environment / "ready").touch()
    found = Airflow(environment, tmp_path_factory.mktemp("home"))
    assert found.run("airflow", "db", "migrate").returncode == 0
    return found


@pytest.fixture
def faults(tmp_path):
    """A folder with the suites, and a command whose workers are fakes."""
    for name, options, arms in (
        ("bad", "{save: 1}", ""),
        ("lost", "{save_s: [0.01, 0.02]}", ""),
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
        f"""case "$*" in *run-sweep-point*{tmp_path}/lost*)\n"""
        f"""grep '^ "' "{planned}" | tail -1 | grep -q "$last" && kill -9 $$;; esac\n"""
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
    info = json.loads((tmp_path / "sweep-20261122" / "run.json").read_text())
    assert info["status"] == "complete"
    assert (tmp_path / "sweep-20261122" / "report.html").exists()


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
    assert (faults / "slower" / "ending.md").read_text().startswith("# REGRESSION")
    assert "enforce-verdict ended with exit code 3" in done.stdout
    assert json.loads((faults / "slower" / "verdicts.json").read_text())["points"]
    assert airflow.rows(
        "select uri, event.extra from asset_event event join asset on asset.id = event.asset_id"
    ) == [("verdict", '{"returned": "REGRESSION"}')]


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
