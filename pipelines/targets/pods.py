"""Pods of steps on Kubeflow: what is set for them, by kfp's own calls for Kubernetes."""

from typing import Any, Final

from orbax_bench_core.launchers import (
    GKE_GPU,
    GKE_RESOURCE,
    GPU_RESOURCE,
    SliceShape,
    provisioning,
)
from orbax_bench_core.provenance import NODE
from orbax_bench_pipelines.targets.settings import Settings
from orbax_bench_pipelines.targets.values import StepSettings

_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_PRIORITY: Final = "kueue.x-k8s.io/priority-class"
_SPOT: Final = "cloud.google.com/gke-spot"


def as_pod(settings: Settings, own: StepSettings, task: Any) -> None:
    """Gives the pod of a step what is set for every one."""
    from kfp import kubernetes

    for claim in settings.pvc:
        kubernetes.mount_pvc(task, pvc_name=claim.name, mount_path=claim.path)
    for secret in settings.secrets:
        if secret.path is not None:
            kubernetes.use_secret_as_volume(task, secret.name, mount_path=secret.path)
        else:
            kubernetes.use_secret_as_env(task, secret.name, {secret.key: secret.variable})
    if settings.pull_secrets:
        kubernetes.set_image_pull_secrets(task, list(settings.pull_secrets))
    for key, value in settings.labels.items():
        kubernetes.add_pod_label(task, key, value)
    for key, value in settings.annotations.items():
        kubernetes.add_pod_annotation(task, key, value)
    if own.timeout_s is not None:
        kubernetes.set_timeout(task, own.timeout_s)
    context = settings.security_context
    if context is not None:
        user, group = context.run_as_user, context.run_as_group
        kubernetes.set_security_context(task, run_as_user=user, run_as_group=group)


def onto_nodes(settings: Settings, shape: SliceShape | None, task: Any) -> None:
    """Gives the pod of a step that measures its node, its queue and its volumes."""
    from kfp import kubernetes

    selectors = dict(settings.node_selectors)
    tolerations = [each.model_dump(exclude_none=True) for each in settings.tolerations]
    if shape is not None:
        task.set_accelerator_type(GKE_RESOURCE).set_accelerator_limit(shape.chips)
        selectors |= shape.node_selectors
        tolerations.append({"key": GKE_RESOURCE, "operator": "Exists"})
    gpus = settings.gpu
    if gpus is not None:
        task.set_accelerator_type(GPU_RESOURCE).set_accelerator_limit(gpus.count)
        selectors |= {} if gpus.kind is None else {GKE_GPU: gpus.kind.gke}
        tolerations.append({"key": GPU_RESOURCE, "operator": "Exists"})
    if settings.spot:
        selectors[_SPOT] = "true"
        tolerations.append(
            {"key": _SPOT, "operator": "Equal", "value": "true", "effect": "NoSchedule"}
        )
    capacity = provisioning(
        settings.queue,
        settings.max_run_s,
        settings.reservation,
        flex_start=bool(settings.flex_start),
    )
    tolerations += [
        {"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in capacity.taints
    ]
    for key, value in {**selectors, **capacity.node_selectors}.items():
        kubernetes.add_node_selector(task, key, value)
    for toleration in tolerations:
        kubernetes.add_toleration(task, **toleration)
    for key, name in {_QUEUE: settings.queue, _PRIORITY: settings.priority}.items():
        if name is not None:
            kubernetes.add_pod_label(task, key, name)
    for key, value in capacity.annotations.items():
        kubernetes.add_pod_annotation(task, key, value)
    for affinity in settings.node_affinity:
        expression = affinity.model_dump(exclude={"weight"}) | {"values": list(affinity.values)}
        kubernetes.add_node_affinity(task, match_expressions=[expression], weight=affinity.weight)
    if settings.shared_memory is not None:
        kubernetes.empty_dir_mount(
            task,
            volume_name="shared-memory",
            mount_path="/dev/shm",  # noqa: S108 - the place of shared memory, not a file
            medium="Memory",
            size_limit=settings.shared_memory,
        )
    for index, scratch in enumerate(settings.scratch):
        kubernetes.add_ephemeral_volume(
            task,
            volume_name=f"scratch-{index}",
            mount_path=scratch.path,
            access_modes=["ReadWriteOnce"],
            size=scratch.size,
            storage_class_name=scratch.storage_class,
        )
    kubernetes.use_field_path_as_env(task, env_name=NODE, field_path="spec.nodeName")
