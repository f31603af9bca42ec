"""Pods of steps on Kubeflow: what is set for them, by kfp's own calls for Kubernetes."""

from __future__ import annotations

from typing import Any, Final

from orbax_bench_core.launchers import (
    GKE_GPU,
    GKE_RESOURCE,
    GPU_RESOURCE,
    Gpus,
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
    """Gives the pod of a step that measures its node."""
    from kfp import kubernetes

    for key, value in settings.node_selectors.items():
        kubernetes.add_node_selector(task, key, value)
    for toleration in settings.tolerations:
        kubernetes.add_toleration(task, **toleration.model_dump(exclude_none=True))
    if shape is not None:
        _with_tpus(shape, task)
    if settings.gpu is not None:
        _with_gpus(settings.gpu, task)
    _admitted(settings, task)
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


def _with_tpus(shape: SliceShape, task: Any) -> None:
    from kfp import kubernetes

    task.set_accelerator_type(GKE_RESOURCE).set_accelerator_limit(shape.chips)
    for key, value in shape.node_selectors.items():
        kubernetes.add_node_selector(task, key, value)
    kubernetes.add_toleration(task, key=GKE_RESOURCE, operator="Exists")


def _with_gpus(gpus: Gpus, task: Any) -> None:
    from kfp import kubernetes

    task.set_accelerator_type(GPU_RESOURCE).set_accelerator_limit(gpus.count)
    if gpus.kind is not None:
        kubernetes.add_node_selector(task, GKE_GPU, gpus.kind.gke)
    kubernetes.add_toleration(task, key=GPU_RESOURCE, operator="Exists")


def _admitted(settings: Settings, task: Any) -> None:
    """Gives the pod its queue, and the machines of GKE that were asked for."""
    from kfp import kubernetes

    if settings.queue is not None:
        kubernetes.add_pod_label(task, _QUEUE, settings.queue)
    if settings.priority is not None:
        kubernetes.add_pod_label(task, _PRIORITY, settings.priority)
    if settings.spot:
        kubernetes.add_node_selector(task, _SPOT, "true")
        kubernetes.add_toleration(
            task, key=_SPOT, operator="Equal", value="true", effect="NoSchedule"
        )
    capacity = provisioning(
        settings.queue,
        settings.max_run_s,
        settings.reservation,
        flex_start=bool(settings.flex_start),
    )
    for key, value in capacity.node_selectors.items():
        kubernetes.add_node_selector(task, key, value)
    for key in capacity.taints:
        kubernetes.add_toleration(task, key=key, operator="Exists", effect="NoSchedule")
    for key, value in capacity.annotations.items():
        kubernetes.add_pod_annotation(task, key, value)
