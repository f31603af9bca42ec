"""A real Airflow, in an environment of its own, as tests run DAGs in it."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.request

from tests.support.processes import LONGEST_S, ROOT, wait_until

AIRFLOW = ("apache-airflow>=3.3,<3.4", "apache-airflow-providers-cncf-kubernetes")


class Airflow:
    """Airflow's environment, with a home of its own."""

    def __init__(self, environment, home):
        self.bin = environment / "bin"
        self.home = home

    @classmethod
    def made(cls, home):
        """Returns an Airflow, whose environment is made where there is none yet.

        Raises:
            subprocess.CalledProcessError: It cannot be made, such as without a package index.
        """
        environment = ROOT / "build" / "airflow"
        uv = [sys.executable, "-m", "uv"]
        if not (environment / "ready").exists():
            shutil.rmtree(environment, ignore_errors=True)
            python = environment / "bin" / "python"
            # The first DAG would compile all that it needs, in the time that it has to be read.
            quiet = ["--quiet", "--compile-bytecode"]
            install = [*uv, "pip", "install", *quiet, "--python", python]
            for command in (
                [*uv, "venv", "--quiet", environment],
                [*install, *AIRFLOW],
                [*install, "--no-deps", "--editable", ROOT],
            ):
                subprocess.run(command, check=True)
            (environment / "ready").touch()
        found = cls(environment, home)
        assert found.run("airflow", "db", "migrate").returncode == 0
        return found

    def variables(self, **more):
        own = {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            # 30 s by default, which a busy machine takes to import the provider of Kubernetes.
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "600",
        }
        return {name: text for name, text in os.environ.items() if name != "XLA_FLAGS"} | own | more

    def run(self, program, *words, **variables):
        return subprocess.run(
            [self.bin / program, *words],
            env=self.variables(**variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=1500,
        )

    def rows(self, query, *values):
        """Returns what Airflow's database has."""
        with contextlib.closing(sqlite3.connect(self.home / "airflow.db")) as database:
            return database.execute(query, values).fetchall()

    def test(self, dag, folder, day=22, **variables):
        """Runs a DAG once; returns the states of its tasks, and all that was printed."""
        variables = {"AIRFLOW__CORE__DAGS_FOLDER": str(folder), **variables}
        done = self.run("airflow", "dags", "test", dag, f"2026-11-{day}", **variables)
        query = "select task_id, map_index, state from task_instance where dag_id = ?"
        found = self.rows(query, dag)
        return {(id_.partition(".")[2], index): state for id_, index, state in found}, done

    @contextlib.contextmanager
    def serving(self, folder, **variables):
        """Starts Airflow's own processes; gives what runs a DAG, and returns how that ended."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        url = f"http://localhost:{port}"
        variables |= {
            "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        }
        query = "select state from dag_run where run_id = ? and state in ('success', 'failed')"

        def ask(path, body=None, method="GET", **headers):
            asked = urllib.request.Request(f"{url}/{path}", body, headers, method=method)
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return json.load(answer)

        def run(dag):
            token = ask("auth/token")["access_token"]
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            wait_until(lambda: self.rows("select 1 from dag where dag_id = ?", dag), said)
            ask(f"api/v2/dags/{dag}", b'{"is_paused": false}', "PATCH", **headers)
            body = b'{"logical_date": null}'
            id_ = ask(f"api/v2/dags/{dag}/dagRuns", body, "POST", **headers)["dag_run_id"]
            wait_until(lambda: self.rows(query, id_), said, LONGEST_S)
            return self.rows(query, id_)[0][0]

        def is_up():
            with contextlib.suppress(OSError):
                return ask("api/v2/monitor/health")

        def said():
            return "\n".join(path.read_text()[-3000:] for path in self.home.glob("*.log"))

        with contextlib.ExitStack() as stack:
            for program, *more in (
                ("api-server", "--workers", "1", "--port", port),
                ("dag-processor",),
                ("scheduler", "--skip-serve-logs"),
            ):
                process = subprocess.Popen(
                    [self.bin / "airflow", program, *more],
                    env=self.variables(**variables),
                    stdout=stack.enter_context((self.home / f"{program}.log").open("w")),
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                stack.enter_context(process)
                stack.callback(os.killpg, process.pid, signal.SIGKILL)
            wait_until(is_up, said, LONGEST_S)
            yield run
