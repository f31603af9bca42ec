"""Outcomes of steps in Airflow's terms, as JSON; runs in Airflow's own environment."""

import json

from airflow.providers.cncf.kubernetes.backcompat.backwards_compat_converters import (
    convert_env_vars,
)
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk import DAG, XComArg
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from kubernetes.client import models as k8s

from orbax_bench_airflow import Kubernetes, regression, sweep
from orbax_bench_airflow.outcome import check

CODES = (0, 1, 2, 3, 4, 75, 130, 137, -9)


def outcome(function, *arguments):
    try:
        function(*arguments)
    except AirflowFailException:
        return "fails at once"
    except AirflowException:
        return "is tried again"
    return "succeeds"


def pod(code):
    ended = k8s.V1ContainerState(terminated=k8s.V1ContainerStateTerminated(exit_code=code))
    status = k8s.V1ContainerStatus(
        name="base", state=ended, image="i", image_id="i", ready=False, restart_count=0
    )
    phase = "Failed" if code else "Succeeded"
    return k8s.V1Pod(
        metadata=k8s.V1ObjectMeta(name="p"),
        spec=k8s.V1PodSpec(containers=[k8s.V1Container(name="base")]),
        status=k8s.V1PodStatus(phase=phase, container_statuses=[status]),
    )


def cleaned_up(code):
    kind, given = Kubernetes(image="image@sha256:0", pod={"namespace": "bench"}).operator()
    operator = kind(task_id="measure", arguments=["run-sweep-point"], **given)
    # Only these speak with a cluster.
    for name in ("patch_already_checked", "process_pod_deletion", "_read_pod_container_states"):
        setattr(operator, name, lambda *given, **more: None)
    operator._read_pod_events = lambda *given, **more: None
    operator.is_istio_enabled = lambda pod: False
    assert isinstance(operator, KubernetesPodOperator)
    operator.cleanup(pod(code), pod(code))


def variables():
    """Returns what a pod of the image by digest has in its environment."""
    kind, given = Kubernetes(image="image@sha256:0", pod={"env_vars": {"A": "b"}}).operator()
    operator = kind(task_id="plan", arguments=["plan-sweep"], **given)
    return {each.name: each.value for each in convert_env_vars(operator.env_vars)}


def at_once():
    """Returns how many tasks of a run may measure beside each other."""
    found = {}
    with DAG("groups", schedule=None) as dag:
        sweep("suite.yaml", "/run", group_id="measures")
        pods = Kubernetes(image="image@sha256:0")
        regression("suite.yaml", "/other", group_id="in_pods", place=pods, parallelism=4)
    for group in ("measures", "in_pods"):
        measure = dag.get_task(f"{group}.measure")
        found[group] = measure.partial_kwargs["max_active_tis_per_dagrun"]
    return found


def started():
    """Returns the words of every step of a comparison in pods."""
    with DAG("all", schedule=None) as dag:
        pods = Kubernetes(image="image@sha256:0")
        given = {"arms": "{}", "baseline": "b", "registry": "r", "allow_inconclusive": True}
        regression("suite.yaml", "/run", place=pods, **given)
    steps = [task.arguments for task in dag.tasks if hasattr(task, "arguments")]
    return [["PASS" if isinstance(word, XComArg) else word for word in words] for words in steps]


def waits(**pod):
    """Returns whether a step in a pod leaves the worker while it waits, and how long for a node."""
    kind, given = Kubernetes(image="image@sha256:0", pod=pod).operator()
    operator = kind(task_id="plan", arguments=["plan-sweep"], **given)
    return operator.deferrable, operator.schedule_timeout_seconds, operator.startup_timeout_seconds


if __name__ == "__main__":
    codes = {code: outcome(check, code, "step") for code in CODES}
    pods = {code: outcome(cleaned_up, code) for code in CODES}
    found = {
        "codes": codes,
        "pods": pods,
        "started": started(),
        "variables": variables(),
        "waits": [waits(), waits(deferrable=False, startup_timeout_seconds=60)],
        "at_once": at_once(),
    }
    print(json.dumps(found))
