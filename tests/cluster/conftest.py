"""A cluster that variables name, what the tests made there, and the table of what was seen."""

import dataclasses
import datetime
import functools
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
import uuid
import warnings
from pathlib import Path

import pytest
import yaml

from tests.support.processes import plain_environment, run_cli
from tests.support.webhook import listening

MOUNT = "/mnt/orbax-bench-acceptance"
"""Where pods mount the claim: no folder of this machine, which then cannot read the results."""
NEEDED = {
    "CLUSTER_ENDPOINT": "the address of Kubeflow Pipelines",
    "CLUSTER_IMAGE": "the image of this commit by digest, as pods pull it",
}
WITHIN_S = 500
ROWS = []


def wait_until(condition, told=str):
    """Waits until something holds, and asks every other second."""
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, f"it does not hold after {WITHIN_S} s: {told()}"
        time.sleep(2)


@dataclasses.dataclass
class Begun:
    """A command that a test disturbs."""

    process: subprocess.Popen
    log: Path

    @property
    def output(self):
        return self.log.read_text()

    @property
    def run_id(self):
        """The id of its pipeline's run, or None before it has one."""
        found = re.search(r"runs/details/(\S+)", self.output)
        return found and found[1]


@dataclasses.dataclass
class Cluster:
    """What is given, and a folder of this run in the claim or bucket."""

    folder: str
    tmp: Path
    given: dict[str, str]
    processes: list = dataclasses.field(default_factory=list)

    @functools.cached_property
    def kubernetes(self):
        """The client of Kubernetes, for the cluster of KUBECONFIG."""
        from kubernetes import client, config

        config.load_kube_config()
        return client

    @functools.cached_property
    def kubeflow(self):
        """The client of Kubeflow Pipelines."""
        import kfp

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # it names its oldest server
            return kfp.Client(host=self.given["CLUSTER_ENDPOINT"], namespace=self.namespace)

    @property
    def namespace(self):
        return self.given.get("CLUSTER_NAMESPACE", "kubeflow")

    @property
    def account(self):
        return self.given.get("CLUSTER_ACCOUNT", "pipeline-runner")

    @property
    def image(self):
        return self.given["CLUSTER_IMAGE"]

    @property
    def claim(self):
        return self.given.get("CLUSTER_CLAIM")

    @property
    def place(self):
        """The folder of this run."""
        return f"{self.given.get('CLUSTER_BUCKET', MOUNT).rstrip('/')}/{self.folder}"

    @functools.cached_property
    def settings(self):
        """Settings of every pipeline: those of CLUSTER_SETTINGS, and where it runs."""
        file = self.given.get("CLUSTER_SETTINGS")
        found = yaml.safe_load(Path(file).read_text()) if file else {}
        found |= {"endpoint": self.given["CLUSTER_ENDPOINT"], "image": self.image}
        found["experiment"] = self.folder
        if self.claim:
            found["pvc"] = {"name": self.claim, "path": MOUNT}
        if "CLUSTER_ADDRESS" in self.given:
            found["secrets"] = [{"name": self.folder, "key": "url", "variable": NOTIFY}]
        return found

    def has(self, group):
        """Returns whether Kubernetes has an API of this group."""
        return any(
            each.name == group for each in self.kubernetes.ApisApi().get_api_versions().groups
        )

    def file(self, name, text):
        """Writes a file here, and returns its path."""
        path = self.tmp / name
        path.write_text(text)
        return path

    def pipeline(self, command, name, suite, *words, folder=None):
        """Runs `orbax-bench pipeline` for a suite of this name."""
        return run_cli(*self._words(command, name, suite, folder), *words, COLUMNS="200")

    def begin(self, name, suite, **settings):
        """Begins to run a pipeline for a suite of this name, and waits until it has an id."""
        begun = self.start(name, *self._words("run", name, suite, **settings))
        wait_until(lambda: begun.run_id, lambda: begun.output)
        return begun

    def start(self, name, *words):
        """Starts a command, which the end of the tests kills."""
        command = [sys.executable, "-m", "orbax_bench_core.cli", *map(str, words)]
        log = self.file(f"{name}.log", "")
        with log.open("w") as out:
            environment = plain_environment(COLUMNS="200")
            process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
        self.processes.append(process)
        return Begun(process, log)

    def _words(self, command, name, suite, folder=None, **settings):
        file = self.file(f"{name}.yaml", f"suite_name: {name}\n{suite}")
        chosen = self.file(f"{name}.settings.yaml", json.dumps(self.settings | settings))
        place = f"{self.place}/{folder or name}"
        return "pipeline", command, file, "-o", place, "--target", "kfp", "--settings", chosen

    def run_id(self, output):
        """Returns the id of the run that a command has begun, by what it printed."""
        return re.search(r"runs/details/(\S+)", output).group(1)

    def steps_of(self, run_id):
        """Returns the pods of a run that are running, by the name of their node in the workflow."""
        node = "workflows.argoproj.io/node-name"
        return {
            (pod.metadata.annotations or {}).get(node, ""): pod
            for pod in self.pods_of(run_id)
            if pod.status.phase == "Running"
        }

    def has_log(self, run_id, pod):
        """Says whether the service reads the log of a running pod, which takes a role for it."""
        path = f"apis/v1alpha1/runs/{run_id}/nodes/{pod.metadata.name}/log"
        with urllib.request.urlopen(f"{self.given['CLUSTER_ENDPOINT']}/{path}") as answer:
            return not answer.read().startswith(b'{"error_message":')

    def seconds_of(self, run_id):
        """Returns how long a run took, as Kubeflow says."""
        run = self.kubeflow.get_run(run_id)
        return (run.finished_at - run.created_at).total_seconds()

    def pods_of(self, run_id):
        """Returns the pods of a run."""
        core, label = self.kubernetes.CoreV1Api(), f"pipeline/runid={run_id}"
        return core.list_namespaced_pod(self.namespace, label_selector=label).items

    def mounted(self, pod):
        """Has a pod, as a manifest, mount the claim, if there is one."""
        if self.claim:
            volumes = pod.setdefault("volumes", [])
            volumes.append({"name": "runs", "persistentVolumeClaim": {"claimName": self.claim}})
            for container in pod.get("containers", ()):
                mount = {"name": "runs", "mountPath": MOUNT}
                container.setdefault("volumeMounts", []).append(mount)
        return pod

    def run_job(self, name, spec):
        """Runs a Job to its end, and returns whether it completed, and what its pod printed."""
        batch, core = self.kubernetes.BatchV1Api(), self.kubernetes.CoreV1Api()
        name = f"{self.folder}-{name}"
        batch.create_namespaced_job(self.namespace, {"metadata": {"name": name}, "spec": spec})
        try:
            read = functools.partial(batch.read_namespaced_job_status, name, self.namespace)
            wait_until(lambda: _ended(read()), lambda: f"{read().status}")
            pods = core.list_namespaced_pod(self.namespace, label_selector=f"job-name={name}").items
            logs = [core.read_namespaced_pod_log(p.metadata.name, self.namespace) for p in pods]
            return bool(read().status.succeeded), "\n".join(logs)
        finally:
            batch.delete_namespaced_job(name, self.namespace, propagation_policy="Background")

    def shell(self, name, script, **variables):
        """Runs a script in the image, where the claim is mounted."""
        container = {
            "name": "shell",
            "image": self.image,
            "command": ["sh", "-ec", script],
            "env": [{"name": key, "value": value} for key, value in variables.items()],
        }
        pod = self.mounted({"restartPolicy": "Never", "containers": [container]})
        done, log = self.run_job(name, {"backoffLimit": 0, "template": {"spec": pod}})
        assert done, log

    def put(self, name, text):
        """Writes a file into the folder of this run, and returns its path there."""
        path = f"{self.place}/suites/{name}"
        if self.claim:
            script = 'mkdir -p "$(dirname "$FILE")" && printf %s "$TEXT" > "$FILE"'
            self.shell(f"put-{name.partition('.')[0]}", script, FILE=path, TEXT=text)
        else:
            from etils import epath

            epath.Path(path).write_text(text)
        return path

    def clean_up(self):
        """Removes the folder of this run, and its runs and experiment of Kubeflow."""
        for process in self.processes:
            process.kill()
        for experiment in self.kubeflow.list_experiments(page_size=100).experiments or ():
            if experiment.display_name == self.folder:
                key = experiment.experiment_id
                for run in self.kubeflow.list_runs(experiment_id=key, page_size=100).runs or ():
                    self.kubeflow.delete_run(run.run_id)
                self.kubeflow.delete_experiment(key)
        if self.claim:
            self.shell("clean", 'rm -rf "$FOLDER"', FOLDER=self.place)
        else:
            from etils import epath

            epath.Path(self.place).rmtree(missing_ok=True)


NOTIFY = "ORBAX_BENCH_NOTIFY"


def _ended(job):
    return job.status.succeeded or any(
        each.type == "Failed" for each in job.status.conditions or ()
    )


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """The cluster, which is left without what was made there."""
    given = {name: text for name, text in os.environ.items() if name.startswith("CLUSTER_")}
    lacking = [f"{name}: {what}" for name, what in NEEDED.items() if name not in given]
    if ("CLUSTER_CLAIM" in given) == ("CLUSTER_BUCKET" in given):
        lacking.append("CLUSTER_CLAIM or CLUSTER_BUCKET: where results go, a claim or gs://BUCKET")
    if lacking:
        pytest.fail("set " + "; ".join(lacking))
    folder = f"acceptance-{uuid.uuid4().hex[:8]}"
    found = Cluster(folder, tmp_path_factory.mktemp("cluster"), given)
    ROWS.append(("Kubernetes", found.kubernetes.VersionApi().get_code().git_version))
    try:
        yield found
    finally:
        found.clean_up()


@pytest.fixture(scope="session", autouse=True)
def posted(cluster):
    """Messages that pods post to a webhook here, or None where no pod can reach this machine.

    Every step has the secret with its address, and waits without it.
    """
    address = cluster.given.get("CLUSTER_ADDRESS")
    if address is None:
        yield None
        return
    core = cluster.kubernetes.CoreV1Api()
    with listening("0.0.0.0") as server:
        url = f"http://{address}:{server.server_port}/"
        secret = {"metadata": {"name": cluster.folder}, "stringData": {"url": url}}
        core.create_namespaced_secret(cluster.namespace, secret)
        try:
            yield server.posted
        finally:
            core.delete_namespaced_secret(cluster.folder, cluster.namespace)


def pytest_runtest_logreport(report):
    """Keeps a row of the table for each test of this folder."""
    if "tests/cluster/" not in report.nodeid or (report.when != "call" and report.passed):
        return
    name = re.search(r"::test_(.*)$", report.nodeid).group(1).replace("_", " ")
    told = dict(report.user_properties)
    if report.skipped:
        told["said"] = report.longrepr[2].removeprefix("Skipped: ")
    ROWS.append(
        (name, report.outcome, told.get("s", ""), told.get("pods", ""), told.get("said", ""))
    )


def pytest_terminal_summary(terminalreporter):
    """Prints the table that perf/cluster.md takes."""
    rows = [row for row in ROWS if len(row) > 2]
    if not rows:
        return
    versions = ", ".join(" ".join(row) for row in ROWS if len(row) == 2)
    write = terminalreporter.write_line
    write(f"\n{datetime.datetime.now(datetime.UTC):%-d %B %Y}, {versions}\n")
    write("| what | result | s | pods | said |\n|---|---|---|---|---|")
    for row in rows:
        write(f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |")
