"""Status of JobSets and pods, as Kubernetes tells it."""

from __future__ import annotations

from collections.abc import Sequence

from orbax_bench_core.launchers.kubernetes_api import Object


def terminal(found: Object) -> str:
    """Returns the word in which an object has ended; empty while it has not."""
    return str(found.get("status", {}).get("terminalState", ""))


def condition(found: Object, kind: str) -> Object:
    """Returns a condition that holds; empty where it does not."""
    for condition in found.get("status", {}).get("conditions") or ():
        if condition["type"] == kind and condition["status"] == "True":
            return dict(condition)
    return {}


def suspended(found: Object) -> bool:
    """Says whether an object waits in a queue."""
    return bool(found.get("spec", {}).get("suspend") or condition(found, "Suspended"))


def containers(pod: Object) -> list[Object]:
    """Returns the status of each container of a pod."""
    return list(pod.get("status", {}).get("containerStatuses") or ())


def container(pod: Object, name: str) -> Object:
    """Returns the status of one container of a pod; empty where it has none."""
    return next((each for each in containers(pod) if each["name"] == name), {})


def exit_code(pod: Object, name: str) -> int:
    """Returns with which code a container ended last; 0 where it has not."""
    status = container(pod, name)
    for key in ("state", "lastState"):
        ended = status.get(key, {}).get("terminated")
        if ended:
            return int(ended.get("exitCode", 0))
    return 0


def has_run(pod: Object) -> bool:
    """Says whether all containers of a pod run or have run."""
    states = [status.get("state", {}) for status in containers(pod)]
    return bool(states) and all({"running", "terminated"} & state.keys() for state in states)


def reasons(pods: Sequence[Object]) -> str:
    """Returns why pods do not run, each reason once."""
    found: dict[str, str] = {}
    for pod in pods:
        name = pod["metadata"]["name"]
        for status in containers(pod):
            waiting = status.get("state", {}).get("waiting")
            if waiting:
                text = ": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))
                found.setdefault(text, name)
        for condition in pod.get("status", {}).get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                found.setdefault(str(condition.get("message")), name)
    return "".join(f"; {name}: {reason}" for reason, name in list(found.items())[:3])


def reference(owner: Object) -> Object:
    """Returns what an object says of the one that it is deleted with."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
