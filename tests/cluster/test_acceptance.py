"""What a cluster has to do: `make cluster`, against the one that CLUSTER_* and KUBECONFIG name."""

import concurrent.futures
import contextlib
import json
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.cluster.conftest import MOUNT, WITHIN_S, wait_until
from tests.support.airflow import Airflow
from tests.support.processes import run_cli

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
ENDED = ("SUCCEEDED", "FAILED", "CANCELED", "SKIPPED")
AT_A_TIME = 3
"""Pipelines that run next to each other; measurements of one machine wait for each other."""

POINT = """\
num_repeats: 2
checkpoint_config: {spec: {w: {dtype: float32, shape: [512, 256], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 2}}
benchmarks: [{generator: save_restore, options: {}}]
"""
QUICK = "gate: {looks: [10], max_stalls: null, max_failures: null}\n"
PLANTED = """\
checkpoint_config: {spec: {w: {dtype: float32, shape: [256, 128], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 2}}
benchmarks:
- generator: checkpoint_interval
  options: {train_steps: 10, save_interval_steps: 5, matrix_size: 256}
arms: {candidate: {options: {matrix_size: 1024}}}
gate: {looks: [10], primary: [train], max_stalls: null, max_failures: null}
"""
STUDY = """\
num_repeats: 6
checkpoint_configs:
- {name: small, spec: {w: {dtype: float32, shape: [256, 256]}}}
- {name: large, spec: {w: {dtype: float32, shape: [1024, 1024]}}}
benchmarks: [{generator: save_restore, options: {async_enabled: [false, true]}}]
"""
TOO_LARGE = """\
num_repeats: 2
checkpoint_config: {spec: {w: {dtype: float32, shape: [16384, 16384], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 2}}
execution: {warmups: 0, retries: 0}
benchmarks: [{generator: save_restore, options: {}}]
"""
FLAX = """\
checkpoint_config: {nnx: "flax.nnx:Rngs"}
benchmarks: [{generator: save_restore, options: {}}]
"""


class Case(NamedTuple):
    """A pipeline, and how it has to end."""

    name: str
    suite: str
    pipeline: str = "sweep"
    settings: tuple[str, ...] = ()
    codes: tuple[int, ...] = (0,)
    said: str = "PASS: every point is complete"
    posted: str = ""  # a state that the webhook has to get
    after: str = ""  # the case whose folder it is given
    page: str = ""  # what the page has that is fetched


CASES = (
    Case("sweep", POINT),
    Case("refused-suite", FLAX, codes=(1,), said="needs flax, which", posted="FAILED"),
    Case(
        "planted-regression",
        PLANTED,
        "regression",
        codes=(3,),
        said="train operations take",
        posted="REGRESSION",
        page="REGRESSION",
    ),
    # On a busy node a comparison may have no verdict.
    Case("regression", POINT + QUICK, "regression", ("arms={}",), (0, 4), "saves"),
    Case(
        "refused-folder",
        POINT,
        codes=(1,),
        said="give each run a folder of its own",
        posted="FAILED",
        after="sweep",
    ),
    Case("async-study", STUDY, "async-study", said="every point is complete"),
    Case("calibration", POINT + QUICK, "calibration", said="saves"),
    Case(
        "framework-comparison",
        POINT + QUICK,
        "framework-comparison",
        ("arms={candidate: {options: {use_ocdbt: false}}}",),
        said="saves",
    ),
    Case(
        "out-of-memory",
        TOO_LARGE,
        settings=("memory=900Mi", "measure_limits=false"),
        codes=(1,),
        said="memory ran out: the kernel killed it at the limit of its container, at 900 MiB",
        posted="FAILED",
    ),
)


@pytest.fixture(scope="module")
def begun(request, cluster):
    """The commands of the cases that are chosen, some at a time."""
    if any("deleted" in item.fixturenames for item in request.session.items):
        request.getfixturevalue("deleted")  # which mostly waits
    given = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = [each.params["case"] for each in given if each and "case" in each.params]
    names = {name for case in chosen for name in (case.name, case.after)}
    commands = {}

    def run(case):
        if case.after:
            commands[case.after].result()
        words = [word for each in case.settings for word in ("--set", each)]
        given = ("--pipeline", case.pipeline, *words)
        return cluster.pipeline("run", case.name, case.suite, *given, folder=case.after)

    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for case in (case for case in CASES if case.name in names):
            commands[case.name] = pool.submit(run, case)
        yield commands


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_pipeline(case, begun, cluster, posted, record_property, tmp_path):
    done = begun[case.name].result()
    output = done.stdout + done.stderr
    run_id = cluster.run_id(output)
    record_property("s", round(cluster.seconds_of(run_id)))
    record_property("pods", len(cluster.pods_of(run_id)))
    record_property("said", next((x for x in output.splitlines() if case.said in x), "")[:120])
    assert done.returncode in case.codes, output
    if cluster.claim or case.codes != (0,):
        assert case.said in output
    page = tmp_path / "report.html"
    where = ("--target", "kfp", "--set", f"endpoint={cluster.given['CLUSTER_ENDPOINT']}")
    told = run_cli("pipeline", "report", run_id, *where, "-o", page)
    assert told.returncode in (*case.codes, *((3, 4) if case.codes == (0,) else ())), told.stderr
    assert page.read_text().startswith("<!doctype html>")
    assert case.page in page.read_text()
    if case.posted and posted is not None:
        mine = [message for _, message in posted if message["suite"] == case.name]
        assert case.posted in [message["state"] for message in mine]
        assert case.said in json.dumps(mine)


def test_step_that_is_lost(cluster, record_property):
    """Its pod is deleted: it is measured again, or the run fails and names what it left out."""
    core, deleted = cluster.kubernetes.CoreV1Api(), []
    begun = cluster.begin("lost-step", POINT, retries=0)

    def delete():
        for step, pod in cluster.steps_of(begun.run_id).items():
            if "run-sweep-point(" in step:
                core.delete_namespaced_pod(pod.metadata.name, pod.metadata.namespace)
                deleted.append(pod.metadata.name)
        return deleted

    wait_until(delete, lambda: begun.output)
    code, output = begun.process.wait(WITHIN_S), begun.output
    record_property("s", round(cluster.seconds_of(begun.run_id)))
    record_property("said", "measured again" if code == 0 else "failed, and named its points")
    assert code == 0 or (code == 1 and "left nothing" in output), output


DELETED = ("run", "workflow")


@pytest.fixture(scope="module")
def deleted(cluster):
    """Commands whose runs are deleted under them: one ends at once, one after minutes."""

    def end(what):
        begun = cluster.begin(f"deleted-{what}", POINT.replace("repeats: 2", "repeats: 1000"))
        wait_until(
            lambda: any("run-sweep-point(" in step for step in cluster.steps_of(begun.run_id)),
            lambda: begun.output,
        )
        time.sleep(25)  # the command has seen a log of the step by then
        [pod] = [pod for name, pod in cluster.steps_of(begun.run_id).items() if "executor(" in name]
        is_heard = cluster.has_log(begun.run_id, pod)
        if what == "run" or not is_heard:
            cluster.kubeflow.delete_run(begun.run_id)
        else:
            custom = cluster.kubernetes.CustomObjectsApi()
            custom.delete_collection_namespaced_custom_object(
                *("argoproj.io", "v1alpha1", cluster.namespace, "workflows"),
                label_selector=f"pipeline/runid={begun.run_id}",
            )
        at = time.monotonic()
        ended = begun.process.wait(WITHIN_S), begun.output, time.monotonic() - at
        return *ended, what == "run" or is_heard

    with concurrent.futures.ThreadPoolExecutor(len(DELETED)) as pool:
        yield {what: pool.submit(end, what) for what in DELETED}


def test_a_run_that_is_deleted(deleted, record_property):
    said = []
    for what in DELETED:
        code, output, seconds, is_tried = deleted[what].result()
        assert (code, "was deleted" in output) == (1, True), output
        assert "seen last: running" in output
        told = f"told after {seconds:.0f} s"
        unheard = "not tried: Kubeflow has no right to read the log of a running pod here"
        said.append(f"{what}: {told if is_tried else unheard}")
    record_property("said", "; ".join(said))


def test_recurring_run(cluster, record_property):
    """It begins a run by itself, in a folder of its own, and begins none when it is paused."""
    name = "recurring"
    words = ("--cron", "* * * * *", "--name", cluster.folder)
    done = cluster.pipeline("schedule", name, POINT, *words)
    assert done.returncode == 0, done.stderr
    runs = cluster.kubeflow
    experiment = runs.get_experiment(experiment_name=cluster.folder).experiment_id

    def mine():
        found = runs.list_runs(experiment_id=experiment, page_size=100).runs or ()
        return [run for run in found if run.recurring_run_id]

    where = ("--target", "kfp", "--set", f"endpoint={cluster.given['CLUSTER_ENDPOINT']}")
    try:
        wait_until(mine)
        paused = run_cli(
            *("pipeline", "pause", cluster.folder, *where, "--set", f"experiment={cluster.folder}")
        )
        assert paused.returncode == 0, paused.stderr
        wait_until(lambda: all(run.state in ENDED for run in mine()))
        assert {run.state for run in mine()} == {"SUCCEEDED"}
        record_property("s", round(cluster.seconds_of(mine()[0].run_id)))
        record_property("said", f"{len(mine())} run, then paused")
    finally:
        for each in runs.list_recurring_runs(experiment_id=experiment).recurring_runs or ():
            runs.delete_recurring_run(each.recurring_run_id)


@pytest.mark.parametrize("queue", [False, True], ids=["without-queue", "Kueue"])
def test_jobset_of_two_hosts(cluster, queue, record_property):
    name = "queued" if queue else "two-hosts"
    words = _launch(cluster, name, *(["--set", f"queue={_queue(cluster)}"] if queue else []))
    begun = time.monotonic()
    done = run_cli(*words)
    record_property("s", round(time.monotonic() - begun))
    record_property("pods", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MEASURED: " in done.stdout
    assert "not verified" not in done.stdout
    _check_that_no_jobset_is_left(cluster)


def test_host_that_is_made_again_at_the_end(cluster, record_property):
    """Its new pod waits for a host 0 that has ended, and the command for neither."""
    name = "made-again"
    words, core = _launch(cluster, name), cluster.kubernetes.CoreV1Api()
    begun, made, told_at = cluster.start(name, *words), set(), None
    selector = f"jobset.sigs.k8s.io/jobset-name={cluster.folder}-{name[0]}"
    selector += ",batch.kubernetes.io/job-completion-index=1"
    deadline = time.monotonic() + WITHIN_S
    while begun.process.poll() is None:
        assert time.monotonic() < deadline, begun.output
        pods = core.list_namespaced_pod(cluster.namespace, label_selector=selector).items
        made |= {pod.metadata.name for pod in pods}
        if told_at is None and "MEASURED: " in begun.output:
            told_at = time.monotonic()
            for pod in pods:
                core.delete_namespaced_pod(
                    pod.metadata.name, cluster.namespace, grace_period_seconds=0
                )
        time.sleep(0.2)
    record_property("pods", 1 + len(made))
    record_property("s", round(time.monotonic() - told_at))
    told = "host 0 has ended with 0" in begun.output
    record_property("said", "deleted while it waited" if told else "it ended by itself")
    assert begun.process.returncode == 0, begun.output
    _check_that_no_jobset_is_left(cluster)


def _launch(cluster, name, *more):
    """Returns the words of a launch of two hosts, whose JobSet is called by the first letter."""
    if not cluster.has("jobset.x-k8s.io"):
        pytest.skip("the cluster has no JobSet")
    text = POINT.replace("{x: 2}", "{x: 4}") + "execution: {processes: 2}\n"
    text = f"suite_name: {name}\n{text}"
    how = ("--on", "jobset", "--hosts", 2, "--name", f"{cluster.folder}-{name[0]}")
    words = ["--set", f"namespace={cluster.namespace}", "--image", cluster.image, *more]
    if cluster.claim:  # which is not mounted here, so that the suite has to lie there already
        words += ["--set", f"volume={cluster.claim}:{MOUNT}"]
        words += ["--set", f"suite_in_image={cluster.put(f'{name}.yaml', text)}"]
    if "environment" in cluster.settings:
        words += ["--set", f"environment={json.dumps(cluster.settings['environment'])}"]
    file = cluster.file(f"{name}.yaml", text)
    return "launch", file, *how, "-o", f"{cluster.place}/{name}", *words


def _check_that_no_jobset_is_left(cluster):
    custom = cluster.kubernetes.CustomObjectsApi()
    left = custom.list_namespaced_custom_object(
        "jobset.x-k8s.io", "v1alpha2", cluster.namespace, "jobsets"
    )["items"]
    assert not [each for each in left if each["metadata"]["name"].startswith(cluster.folder)]


def _queue(cluster):
    """Returns a local queue of Kueue, or skips."""
    if not cluster.has("kueue.x-k8s.io"):
        pytest.skip("the cluster has no Kueue")
    custom = cluster.kubernetes.CustomObjectsApi()
    queues = custom.list_namespaced_custom_object(
        "kueue.x-k8s.io", "v1beta1", cluster.namespace, "localqueues"
    )["items"]
    if not queues:
        pytest.skip(f"the namespace {cluster.namespace} has no local queue of Kueue")
    return queues[0]["metadata"]["name"]


def _fitted(cluster, container):
    """Has a container of an example fit a small node, with the variables that steps are given."""
    container["image"] = cluster.image
    container.pop("resources", None)
    given = cluster.settings.get("environment", {}).items()
    container["env"] = [
        *container.get("env", ()),
        *({"name": name, "value": text} for name, text in given),
    ]


def test_workflow_of_Argo(cluster, record_property):
    if not cluster.has("argoproj.io"):
        pytest.skip("the cluster has no Argo Workflows")
    manifest = yaml.safe_load((EXAMPLES / "argo" / "sweep.yaml").read_text())
    suite = cluster.put("argo.yaml", f"suite_name: argo\n{POINT}")
    spec = manifest["spec"]
    given = {"suite": suite, "runs": f"{cluster.place}/argo", "image": cluster.image}
    spec["arguments"]["parameters"] = [{"name": k, "value": v} for k, v in given.items()]
    spec["serviceAccountName"] = cluster.account
    containers = [each["container"] for each in spec["templates"] if "container" in each]
    cluster.mounted(spec | {"containers": containers})
    for container in containers:
        _fitted(cluster, container)
    if cluster.claim:
        claim = {"claimName": cluster.claim}
        spec["volumes"] = [{"name": "runs", "persistentVolumeClaim": claim}]
    custom = cluster.kubernetes.CustomObjectsApi()
    where = ("argoproj.io", "v1alpha1", cluster.namespace, "workflows")
    name = custom.create_namespaced_custom_object(*where, manifest)["metadata"]["name"]
    begun = time.monotonic()

    def phase():
        found = custom.get_namespaced_custom_object(*where, name)
        return found.get("status", {}).get("phase", "")

    try:
        ended = ("Succeeded", "Failed", "Error")
        wait_until(lambda: phase() in ended, phase)
        record_property("s", round(time.monotonic() - begun))
        assert phase() == "Succeeded"
    finally:
        custom.delete_namespaced_custom_object(*where, name)


def test_night_of_the_CronJob(cluster, posted, record_property):
    """The Job that its next night would be."""
    manifest = yaml.safe_load((EXAMPLES / "ci" / "kubernetes-cronjob.yaml").read_text())
    spec = manifest["spec"]["jobTemplate"]["spec"]
    pod = spec["template"]["spec"]
    pod.pop("nodeSelector")
    [container] = pod["containers"]
    _fitted(cluster, container)
    container["command"][-1] += " -- --allow-inconclusive"
    for variable in container["env"]:
        if variable["name"] == "RUNS":
            variable["value"] = f"{cluster.place}/nights"
        elif secret := variable.get("valueFrom", {}).get("secretKeyRef"):
            secret["name"] = cluster.folder
    core, name = cluster.kubernetes.CoreV1Api(), f"{cluster.folder}-suite"
    suite = f"suite_name: a night\n{POINT}arms: {{}}\n{QUICK}"
    volume = next(each for each in pod["volumes"] if "configMap" in each)
    volume["configMap"]["name"] = name
    cluster.mounted(pod)
    core.create_namespaced_config_map(
        cluster.namespace, {"metadata": {"name": name}, "data": {"suite.yaml": suite}}
    )
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        stack.callback(core.delete_namespaced_config_map, name, cluster.namespace)
        done, log = cluster.run_job("night", spec)
    record_property("s", round(time.monotonic() - begun))
    assert done, log
    if posted is not None and '"state":"INCONCLUSIVE"' not in log:  # which is no news
        assert "PASS" in [m["state"] for _, m in posted if m["suite"] == "a night"], log


@pytest.fixture(scope="module")
def airflow(tmp_path_factory):
    try:
        return Airflow.made(tmp_path_factory.mktemp("airflow"))
    except subprocess.CalledProcessError as failed:
        pytest.skip(f"no environment for Airflow can be made: {failed}")


@pytest.mark.parametrize(
    ("group", "suite", "state", "said"),
    [
        ("sweep", POINT, "success", "PASS: every point is complete"),
        ("regression", PLANTED, "failed", "REGRESSION: train operations take"),
    ],
    ids=["sweep", "planted-regression"],
)
def test_DAG_of_Airflow(group, suite, state, said, cluster, airflow, record_property):
    """Airflow is a process here, and each step a pod."""
    name, dag = f"airflow-{group}", f"{group}_in_pods"
    container = {"name": "base", "image": cluster.image}
    _fitted(cluster, container)
    pod = cluster.mounted({"containers": [container], "serviceAccountName": cluster.account})
    template = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": pod}
    # What holds the result of a step: the provider's default is of another registry. It reads
    # KUBECONFIG itself, and a trigger refuses a second way to the cluster.
    extra = {"namespace": cluster.namespace, "xcom_sidecar_container_image": cluster.image}
    begun = time.monotonic()
    states, done = airflow.test(
        *(dag, Path(__file__).with_name("dags")),
        AIRFLOW_CONN_KUBERNETES_DEFAULT=json.dumps({"conn_type": "kubernetes", "extra": extra}),
        POD=json.dumps({"pod_template_dict": template, "labels": {"test": cluster.folder}}),
        SUITE=cluster.put(f"{name}.yaml", f"suite_name: {name}\n{suite}"),
        RUN=f"{cluster.place}/{name}",
    )
    printed = done.stdout + done.stderr
    assert "Unexpected error while waiting for pod" not in printed
    found = airflow.rows("select state from dag_run where dag_id = ?", dag)
    record_property("s", round(time.monotonic() - begun))
    record_property("said", said if said in printed else "")
    assert (found, states.get(("finish", -1))) == ([(state,)], "success"), printed
    assert said in printed
    left = cluster.kubernetes.CoreV1Api().list_namespaced_pod(
        cluster.namespace, label_selector=f"test={cluster.folder}"
    )
    assert not left.items
