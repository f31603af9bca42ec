"""Settings that each target honours, and why others do not."""

from collections.abc import Iterator
from typing import Final

from orbax_bench_pipelines.target import Target
from orbax_bench_pipelines.targets.settings import Settings

_HERE: Final = {"parallelism", "environment", "retries", "backoff_s", "backoff_factor"}
_SERVICE: Final = {
    *("image", "steps", "parallelism", "tpu", "gpu", "gpu_hosts", "cpu", "memory"),
    *("retries", "backoff_s", "backoff_factor", "environment", "labels", "service_account"),
    *("pipeline_root", "experiment", "endpoint", "spot", "launcher_settings"),
    *("reservation", "flex_start", "max_run_s"),
}
HONOURED: Final[dict[Target, set[str]]] = {
    Target.LOCAL: _HERE,
    Target.DOCKER: {*_HERE, "image", "steps"},
    Target.KFP: {
        *_SERVICE,
        *("node_selectors", "node_affinity", "tolerations", "pvc", "namespace", "timeout_s"),
        *("secrets", "pull_secrets", "shared_memory", "scratch", "queue", "priority"),
        *("annotations", "security_context", "ephemeral_storage"),
    },
    Target.VERTEX: {
        *_SERVICE,
        *("tensorboard", "project", "location", "network", "encryption_key"),
    },
}
"""The fields of `Settings` by what honours them; `checks` says under which conditions."""

OF_STEPS: Final[dict[Target, set[str]]] = {
    Target.LOCAL: set(),
    Target.DOCKER: {"image", "retries"},
    Target.KFP: {"image", "cpu", "memory", "retries", "timeout_s"},
    Target.VERTEX: {"image", "cpu", "memory", "retries"},
}
"""The fields of `StepSettings`, likewise."""

_NODES: Final = "the steps of Vertex AI do not run on your nodes"
_PODS: Final = "the steps of Vertex AI are not your pods"
_QUEUE: Final = "Kueue is part of your cluster"
_LIMIT: Final = (
    "Vertex AI Pipelines has no time limit for a step; for the custom jobs of tpu it is "
    "launcher_settings.timeout_s=SECONDS"
)
_OF_GOOGLE: Final = "Kubeflow takes it from its own installation"
REASONS: Final[dict[tuple[Target, str], str]] = {
    **{
        (Target.VERTEX, name): _NODES for name in ("node_selectors", "node_affinity", "tolerations")
    },
    (Target.VERTEX, "pvc"): "Vertex AI has no volume claims; give gs:// paths",
    (Target.VERTEX, "scratch"): "Vertex AI has no volumes; its machines have a disk",
    (Target.VERTEX, "shared_memory"): "Vertex AI gives a step the shared memory of its machine",
    (Target.VERTEX, "secrets"): "Vertex AI has none of Kubernetes; give the service account access "
    "to what they would open",
    (Target.VERTEX, "pull_secrets"): "Vertex AI pulls as its service agent, which must have access "
    "to the registry",
    (Target.VERTEX, "security_context"): _PODS,
    (Target.VERTEX, "ephemeral_storage"): "Vertex AI gives a step the disk of its machine",
    (Target.VERTEX, "queue"): _QUEUE,
    (Target.VERTEX, "priority"): _QUEUE,
    (Target.VERTEX, "annotations"): _PODS,
    (Target.VERTEX, "timeout_s"): _LIMIT,
    (Target.KFP, "network"): _OF_GOOGLE,
    (Target.KFP, "encryption_key"): _OF_GOOGLE,
    (Target.LOCAL, "image"): "every step runs in this environment",
}
"""Reason of a target that cannot honour a setting, where there is more to say than that."""


def takers(name: str) -> list[str]:
    """Returns the targets that honour a field of `Settings`."""
    return [target.value for target in Target if name in HONOURED[target]]


def dropped(settings: Settings, target: Target) -> Iterator[tuple[str, str]]:
    """Yields each setting that a target would drop, and why, for messages."""
    for name in settings.given:
        if name not in HONOURED[target]:
            reason = REASONS.get((target, name))
            because = f": {reason}" if reason else ""
            instead = " or ".join(takers(name))
            said = f"the target {target.value} cannot honour it{because}; leave it out"
            yield name, f"{said} or use --target {instead}"
    if "steps" in HONOURED[target]:
        for step, own in settings.steps.items():
            for key in own.given:
                if key not in OF_STEPS[target]:
                    reason = REASONS.get((target, key))
                    because = f": {reason}" if reason else ""
                    said = f"{step}.{key}: the target {target.value} cannot honour it{because}"
                    yield "steps", said
