"""JobSets: one pod for each host, on Kubernetes."""

from typing import Any, Final, Self

import pydantic

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import HEAD_PORT, TOKEN
from orbax_bench_core.launchers import kubernetes, kubernetes_settings
from orbax_bench_core.launchers.capacity import provisioning, require_bounded, require_one_capacity
from orbax_bench_core.launchers.gpus import GKE_GPU, GPU_RESOURCE
from orbax_bench_core.launchers.launch import Launch
from orbax_bench_core.launchers.shipping import require_jobset_names
from orbax_bench_core.launchers.tpus import GKE_RESOURCE
from orbax_bench_core.provenance import IMAGE

_JOB: Final = "hosts"
_GKE_SPOT: Final = "cloud.google.com/gke-spot"
_GKE_POOL: Final = "cloud.google.com/gke-nodepool"
_TPU_PORTS: Final = (8471, 8431)
"""Ports of libtpu, and of its metrics."""
_KEPT_S: Final = 3600
"""Seconds for which Kubernetes keeps a finished JobSet whose launcher has not deleted it."""
_TOKEN_KEY: Final = "token"  # noqa: S105 - the name of a key


class JobSetSettings(kubernetes_settings.KubernetesSettings):
    """Settings of a JobSet, which docs/launch/jobset.md explains."""

    gpus: int = pydantic.Field(default=0, ge=0)
    gpu: str | None = None
    node_selector: dict[str, kubernetes_settings.Text] = {}
    tolerations: list[dict[str, Any]] = []
    spot: bool = False
    reservation: str | None = None
    flex_start: bool = False
    max_run_s: pydantic.PositiveInt | None = None
    host_network: bool = False
    port: int = pydantic.Field(default=HEAD_PORT, ge=1024, le=65535)
    restarts: int = pydantic.Field(default=1, ge=0)
    grace_s: int = pydantic.Field(default=30, ge=5)

    @pydantic.model_validator(mode="after")
    def _gpus_have_a_number(self) -> Self:
        if self.gpu and not self.gpus:
            raise ValueError(f"gpu={self.gpu} needs gpus=NUMBER, the GPUs of each host, such as 8")
        return self

    @pydantic.model_validator(mode="after")
    def _one_kind_of_capacity(self) -> Self:
        require_one_capacity(self.reservation, spot=self.spot, flex_start=self.flex_start)
        require_bounded(self.max_run_s, self.queue, flex_start=self.flex_start)
        return self


class JobSet(kubernetes.PodsLauncher):
    """Starts a pod for each host."""

    place = "jobset"
    kind = kubernetes.ObjectKind(
        group="jobset.x-k8s.io",
        version="v1alpha2",
        plural="jobsets",
        name="JobSet",
        remedy="install JobSet: https://jobset.sigs.k8s.io/docs/installation/",
    )
    head_job = _JOB
    container = "bench"
    settings: JobSetSettings

    def __init__(self, launch: Launch, settings: JobSetSettings) -> None:
        """Checks what is to be started."""
        if launch.tpu is not None and settings.gpus:
            raise UserError("--on jobset: a host has TPUs or GPUs; give --tpu, or --set gpus=N")
        if launch.tpu is not None and settings.port in _TPU_PORTS:
            raise UserError(f"--on jobset --set port={settings.port}: that is a port of libtpu")
        super().__init__(launch, settings)
        self.pods = launch.hosts
        self._each = launch.hosts // launch.slices
        require_jobset_names(launch.name, {_JOB: (launch.slices, self._each)}, head=_JOB)

    @property
    def with_tpus(self) -> bool:
        """Whether the hosts have TPUs."""
        return self.launch.tpu is not None

    def annotations(self) -> dict[str, str]:
        """Returns the fields that keep a slice of several hosts in one node pool, and its limit."""
        # A slice of one host stands on one node anyway, beside which there are others.
        alone = self.launch.tpu is not None and self.launch.hosts > 1
        placed = {"alpha.jobset.sigs.k8s.io/exclusive-topology": _GKE_POOL} if alone else {}
        return placed | provisioning(self.settings.queue, self.settings.max_run_s).annotations

    def secret(self, token: str) -> kubernetes.Object:
        """Returns the Secret with the token of the run."""
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._secret_name, "labels": dict(kubernetes.OURS)},
            "type": "Opaque",
            "stringData": {_TOKEN_KEY: token},
        }

    def spec(self) -> kubernetes.Object:
        """Returns a replicated job with a pod for each host of a slice."""
        job = {
            "parallelism": self._each,
            "completions": self._each,
            "completionMode": "Indexed",
            **self._job_failures(),
            "template": self._template(),
        }
        return {
            **({"suspend": True} if self.settings.queue else {}),
            "network": {
                "enableDNSHostnames": True,
                "publishNotReadyAddresses": True,
                "subdomain": self.launch.name,
            },
            "failurePolicy": self._set_failures(),
            "successPolicy": {"operator": "All", "targetReplicatedJobs": [_JOB]},
            "coordinator": {"replicatedJob": _JOB, "jobIndex": 0, "podIndex": 0},
            "ttlSecondsAfterFinished": _KEPT_S,
            "replicatedJobs": [
                {"name": _JOB, "replicas": self.launch.slices, "template": {"spec": job}}
            ],
        }

    def _set_failures(self) -> kubernetes.Object:
        """Returns when all pods restart: on TPUs, whose slice ends with each of its hosts."""
        if self.launch.tpu is None:
            return {"maxRestarts": 0}
        preempted = {
            "name": "preempted",
            "action": "RestartJobSetAndIgnoreMaxRestarts",
            "onJobFailureReasons": ["PodFailurePolicy"],
            "targetReplicatedJobs": [_JOB],
        }
        return {"maxRestarts": self.settings.restarts, "rules": [preempted]}

    def _job_failures(self) -> kubernetes.Object:
        """Returns when a pod is made again: where there are no TPUs, whose hosts end together."""
        if self.launch.tpu is None:
            return {"backoffLimit": self.settings.restarts * self._each}
        disrupted = {
            "action": "FailJob",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        }
        return {"backoffLimit": 0, "podFailurePolicy": {"rules": [disrupted]}}

    def _template(self) -> kubernetes.Object:
        settings, tpu = self.settings, self.launch.tpu
        capacity = provisioning(
            settings.queue, settings.max_run_s, settings.reservation, flex_start=settings.flex_start
        )
        accelerator = GKE_RESOURCE if tpu is not None else GPU_RESOURCE if settings.gpus else None
        taints = [accelerator, _GKE_SPOT if settings.spot else None, *capacity.taints]
        pod: kubernetes.Object = {
            "restartPolicy": "OnFailure" if tpu is None else "Never",
            "terminationGracePeriodSeconds": settings.grace_s,
            "nodeSelector": {
                **settings.node_selector,
                **({} if tpu is None else tpu.node_selectors),
                **({GKE_GPU: settings.gpu} if settings.gpu else {}),
                **({_GKE_SPOT: "true"} if settings.spot else {}),
                **capacity.node_selectors,
            },
            "tolerations": [
                *(
                    {"key": key, "operator": "Exists", "effect": "NoSchedule"}
                    for key in filter(None, taints)
                ),
                *settings.tolerations,
            ],
        }
        if settings.host_network:
            pod |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        chips = settings.gpus if tpu is None else tpu.chips_per_host
        ports = [*(() if tpu is None else _TPU_PORTS), settings.port]
        more = {"ports": [{"containerPort": port} for port in ports], "env": self._variables()}
        limits = {} if accelerator is None else {accelerator: chips}
        return self.template(pod, self.bench(more, limits))

    def _variables(self) -> list[kubernetes.Object]:
        """Returns by what a host knows its place, what its records tell of it, and the token."""
        name, settings = self.launch.name, self.settings
        plain = settings.environment | {
            IMAGE: self.image,
            "ORBAX_BENCH_HEAD": f"{name}-{_JOB}-0-0.{name}:{settings.port}",
            "ORBAX_BENCH_NUM_HOSTS": str(self.launch.hosts),
            "ORBAX_BENCH_HOSTS_PER_JOB": str(self._each),
        }
        if _GKE_POOL in settings.node_selector:
            plain["ORBAX_BENCH_NODE_POOL"] = settings.node_selector[_GKE_POOL]
        fields = {
            "ORBAX_BENCH_JOB_INDEX": "metadata.labels['jobset.sigs.k8s.io/job-index']",
            "ORBAX_BENCH_RESTARTS": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']",
            "ORBAX_BENCH_NODE": "spec.nodeName",
        }
        token = {"secretKeyRef": {"name": self._secret_name, "key": _TOKEN_KEY}}
        return [{"name": TOKEN, "valueFrom": token}, *kubernetes.variables(plain, fields)]

    @property
    def _secret_name(self) -> str:
        return f"{self.launch.name}-token"
