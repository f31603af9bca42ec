"""The placement of steps: image, machine and volumes, as a pipeline's builder gives them out."""

import dataclasses
from typing import Any, Final

from orbax_bench_components.image import IMAGE
from orbax_bench_core.launchers import (
    GKE_GPU,
    GKE_RESOURCE,
    GPU_RESOURCE,
    SliceShape,
    expectation,
    is_digest,
    provisioning,
)
from orbax_bench_core.provenance import NODE
from orbax_bench_pipelines.target import SERVICES, Target
from orbax_bench_pipelines.targets.settings import Settings, launcher_of, launcher_settings
from orbax_bench_pipelines.targets.values import StepSettings

_RETRIES: Final = 2
"""Kubeflow starts a step again whose pod was deleted or evicted, which then goes on from there. It
never does so for a container that ended with a code or was killed for memory: a step itself tries
again what may pass."""
_BACKOFF_S: Final = 60
_BACKOFF_FACTOR: Final = 2.0
_NOT_AGAIN: Final = ("enforce-verdict", "judge-run")
"""Steps whose failure is the answer, which is the same each time."""
_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_PRIORITY: Final = "kueue.x-k8s.io/priority-class"
_SPOT: Final = "cloud.google.com/gke-spot"


@dataclasses.dataclass(frozen=True)
class Placement:
    """Places steps as the settings ask.

    A builder hands each step to `place` or, when it measures, to `measure_on`. Accelerators and
    node selectors cannot come from the items of a loop: every kind of slice is a loop of its own.
    """

    target: Target = Target.LOCAL
    settings: Settings = dataclasses.field(default_factory=Settings)
    folder_per_run: bool = False
    """Whether each run writes to a folder of its own below the output directory, as the runs of a
    schedule must: a second run would find the first one finished."""

    @property
    def parallelism(self) -> int | None:
        """How many steps measure at a time; None for no limit.

        On a cluster one by default: points that run at the same time share the storage. On one
        machine they wait for each other in any case.
        """
        if self.settings.parallelism is not None:
            return self.settings.parallelism or None
        return 1 if self.target in SERVICES else None

    def launching(self, shape: SliceShape | None) -> dict[str, Any]:
        """Returns the inputs of run-sweep-point that say where a point is measured, and on what."""
        launcher = launcher_of(self.target, self.settings, shape)
        expected = self._expected(shape)
        expecting = {"expect": expected} if expected else {}
        if not launcher:
            return expecting
        given = launcher_settings(launcher, self.settings)
        started = {"launcher": launcher, "launcher_settings": given}
        # Hosts of a slice are told by the launching step what to expect.
        if shape is None:
            return {**started, **expecting}
        return {**started, "tpu": f"{shape}:{shape.machine_type}"}

    def place(self, task: Any) -> Any:
        """Gives a step its image, and what is set for every step or for it alone.

        No step is served from a cache, which knows nothing of the run directory.
        """
        task.set_caching_options(False)
        own = self.settings.of_step(task.component_spec.name)
        self._run_in(own.image, task)
        for name, value in self.settings.environment.items():
            task.set_env_variable(name, value)
        _give(task, own)
        if own.retries and task.component_spec.name not in _NOT_AGAIN:
            self._try_again(own.retries, task)
        if self.target is Target.KFP:
            _as_pod(self.settings, own, task)
        return task

    def measure_on(self, shape: SliceShape | None, task: Any) -> Any:
        """Gives a step that measures its machine as well.

        A step that launches hosts takes any machine: what is said of machines is an input of it.
        """
        self.place(task)
        settings = self.settings
        retries = settings.of_step(task.component_spec.name).retries
        if retries is None and self.target in SERVICES:
            self._try_again(_RETRIES, task)
        if launcher_of(self.target, settings, shape):
            return task
        _give(task, settings)
        if self.target is Target.KFP:
            _onto_nodes(settings, shape, task)
        elif settings.gpu is not None and settings.gpu.kind is not None:
            task.set_accelerator_type(settings.gpu.kind.vertex)
            task.set_accelerator_limit(settings.gpu.count)
        return task

    def _expected(self, shape: SliceShape | None) -> str:
        """Returns the devices that a point is measured on; empty for any."""
        if shape is not None:
            return expectation(shape)
        gpus = self.settings.gpu
        return "" if gpus is None else gpus.on(self.settings.hosts_of(None)).expected

    def _run_in(self, image: str | None, task: Any) -> None:
        """Gives a step its image, and tells it by its digest, which nothing else does."""
        if image is not None:
            task.set_container_image(image)
        if is_digest(image or IMAGE):
            task.set_env_variable("ORBAX_BENCH_IMAGE", image or IMAGE)

    def _try_again(self, times: int, task: Any) -> None:
        factor, wait = self.settings.backoff_factor, self.settings.backoff_s
        task.set_retry(
            times,
            backoff_duration=f"{_BACKOFF_S if wait is None else wait}s",
            backoff_factor=_BACKOFF_FACTOR if factor is None else float(factor),
        )


def _give(task: Any, asked: Settings | StepSettings) -> None:
    """Gives a step CPUs and memory."""
    if asked.cpu is not None:
        task.set_cpu_limit(asked.cpu).set_cpu_request(asked.cpu)
    if asked.memory is not None:
        task.set_memory_limit(asked.memory).set_memory_request(asked.memory)


def _as_pod(settings: Settings, own: StepSettings, task: Any) -> None:
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


def _onto_nodes(settings: Settings, shape: SliceShape | None, task: Any) -> None:
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
