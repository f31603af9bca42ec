"""JobSets: one pod for each host, on Kubernetes."""

from __future__ import annotations

import secrets
from typing import Any, Final, Self

import pydantic
import yaml

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import HEAD_PORT, TOKEN
from orbax_bench_core.launchers.containers import (
    require_digest,
    require_jobset_names,
    require_shared,
)
from orbax_bench_core.launchers.followed import followed
from orbax_bench_core.launchers.gpus import GKE_GPU, GPU_RESOURCE
from orbax_bench_core.launchers.hardware import GKE_RESOURCE
from orbax_bench_core.launchers.kubernetes import (
    OURS,
    QUEUE,
    KubernetesSettings,
    Text,
    fingerprint,
    mount,
    security,
    volume,
)
from orbax_bench_core.launchers.launch import Launch
from orbax_bench_core.launchers.shipping import shipment
from orbax_bench_core.launchers.watched import JOBSET, Watched
from orbax_bench_core.provenance import IMAGE

_JOB: Final = "hosts"
_CONTAINER: Final = "bench"
_GKE_SPOT: Final = "cloud.google.com/gke-spot"
_GKE_POOL: Final = "cloud.google.com/gke-nodepool"
_ONE_POOL_EACH: Final = {"alpha.jobset.sigs.k8s.io/exclusive-topology": _GKE_POOL}
"""Annotation that puts each slice into a node pool of its own."""
_TPU_PORTS: Final = (8471, 8431)
"""Ports of libtpu, and of its metrics."""
_KEPT_S: Final = 3600
"""Seconds for which Kubernetes keeps a finished JobSet whose launcher has not deleted it."""
_TOKEN_KEY: Final = "token"  # noqa: S105 - the name of a key


class JobSetSettings(KubernetesSettings):
    """Settings of a JobSet.

    Attributes:
        gpus: GPUs of each host.
        gpu: GKE's name of the GPU, such as nvidia-h100-80gb.
        node_selector: More labels that nodes must have.
        tolerations: More taints that hosts are scheduled in spite of, as a pod lists them.
        spot: Whether to run on spot machines of GKE.
        host_network: Whether hosts use the network of their node, which is faster on some machines;
            `port` must then be free there.
        port: Port at which process 0 listens for the others.
        cpu: CPU that each host asks for, as Kubernetes writes it.
        memory: Memory that each host asks for, as Kubernetes writes it.
        restarts: How often what fails is started again. On TPUs that is the whole set, and one that
            was preempted does not count; elsewhere it is a single host.
        grace_s: Seconds that a host gets to end in, as on preemption.
    """

    gpus: int = pydantic.Field(default=0, ge=0)
    gpu: str | None = None
    node_selector: dict[str, Text] = {}
    tolerations: list[dict[str, Any]] = []
    spot: bool = False
    host_network: bool = False
    port: int = pydantic.Field(default=HEAD_PORT, ge=1024, le=65535)
    cpu: Text | None = None
    memory: Text | None = None
    restarts: int = pydantic.Field(default=1, ge=0)
    grace_s: int = pydantic.Field(default=30, ge=5)

    @pydantic.model_validator(mode="after")
    def _gpus_have_a_number(self) -> Self:
        if self.gpu and not self.gpus:
            raise ValueError(f"gpu={self.gpu} needs gpus=NUMBER, the GPUs of each host, such as 8")
        return self


class JobSet:
    """Starts a pod for each host, follows them, and deletes them at the end."""

    def __init__(self, launch: Launch, settings: JobSetSettings) -> None:
        """Checks what is to be started."""
        if launch.tpu is not None and settings.gpus:
            raise UserError("--on jobset: a host has TPUs or GPUs; give --tpu, or --set gpus=N")
        if launch.tpu is not None and settings.port in _TPU_PORTS:
            raise UserError(f"--on jobset --set port={settings.port}: that is a port of libtpu")
        self._image = require_digest(launch, "jobset")
        require_shared(launch, "jobset", settings.mounted, mount="volume=CLAIM:PATH")
        self._each = launch.hosts // launch.slices
        require_jobset_names(launch.name, {_JOB: (launch.slices, self._each)}, head=_JOB)
        self._launch = launch
        self._settings = settings
        self._shipment = shipment(launch, in_image=settings.suite_in_image)

    def shown(self) -> str:
        """Returns the manifests, whose token is made at the start."""
        documents = [self.manifest(), self._secret("made at the start, and never shown")]
        return f"# {self._shipment.said}\n{yaml.safe_dump_all(documents, sort_keys=False)}"

    def start(self) -> int:
        """Creates all, prints what host 0 prints, and deletes all at the end."""
        return followed(self.watched(), self._settings, before=self._shipment.send)

    def watched(self) -> Watched:
        """Returns what is created, and how to tell its hosts apart."""
        return Watched(
            kind=JOBSET,
            manifest=self.manifest(),
            secret=self._secret(secrets.token_hex(32)),
            hosts=self._launch.hosts,
            head_job=_JOB,
            container=_CONTAINER,
            output_directory=self._launch.output_directory,
        )

    def manifest(self) -> dict[str, Any]:
        """Returns the JobSet, whose annotation has a hash of all that it says."""
        settings, name = self._settings, self._launch.name
        labels = dict(OURS)
        if settings.queue:
            labels[QUEUE] = settings.queue
        annotations = _ONE_POOL_EACH if self._launch.slices > 1 else {}
        spec = self._spec()
        return {
            "apiVersion": JOBSET.api_version,
            "kind": JOBSET.name,
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": annotations | fingerprint(labels, spec, self._shipment.digest),
            },
            "spec": spec,
        }

    def _spec(self) -> dict[str, Any]:
        job = {
            "parallelism": self._each,
            "completions": self._each,
            "completionMode": "Indexed",
            **self._job_failures(),
            "template": {"metadata": {"labels": dict(OURS)}, "spec": self._pod()},
        }
        return {
            **({"suspend": True} if self._settings.queue else {}),
            "network": {
                "enableDNSHostnames": True,
                "publishNotReadyAddresses": True,
                "subdomain": self._launch.name,
            },
            "failurePolicy": self._set_failures(),
            "successPolicy": {"operator": "All", "targetReplicatedJobs": [_JOB]},
            "coordinator": {"replicatedJob": _JOB, "jobIndex": 0, "podIndex": 0},
            "ttlSecondsAfterFinished": _KEPT_S,
            "replicatedJobs": [
                {"name": _JOB, "replicas": self._launch.slices, "template": {"spec": job}}
            ],
        }

    def _set_failures(self) -> dict[str, Any]:
        """Returns when all pods restart: on TPUs, whose slice ends with each of its hosts."""
        if self._launch.tpu is None:
            return {"maxRestarts": 0}
        preempted = {
            "name": "preempted",
            "action": "RestartJobSetAndIgnoreMaxRestarts",
            "onJobFailureReasons": ["PodFailurePolicy"],
            "targetReplicatedJobs": [_JOB],
        }
        return {"maxRestarts": self._settings.restarts, "rules": [preempted]}

    def _job_failures(self) -> dict[str, Any]:
        """Returns when a pod is made again: where there are no TPUs, whose hosts end together."""
        if self._launch.tpu is None:
            return {"backoffLimit": self._settings.restarts * self._each}
        disrupted = {
            "action": "FailJob",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        }
        return {"backoffLimit": 0, "podFailurePolicy": {"rules": [disrupted]}}

    def _pod(self) -> dict[str, Any]:
        settings, tpu = self._settings, self._launch.tpu
        accelerator = GKE_RESOURCE if tpu is not None else GPU_RESOURCE if settings.gpus else None
        pod: dict[str, Any] = {
            "restartPolicy": "OnFailure" if tpu is None else "Never",
            "terminationGracePeriodSeconds": settings.grace_s,
            "nodeSelector": self._selectors(),
            "tolerations": [
                *(
                    {"key": key, "operator": "Exists", "effect": "NoSchedule"}
                    for key in (accelerator, _GKE_SPOT if settings.spot else None)
                    if key is not None
                ),
                *settings.tolerations,
            ],
            "containers": [self._container(accelerator)],
            **security(settings),
        }
        if settings.service_account:
            pod["serviceAccountName"] = settings.service_account
        if settings.priority_class:
            pod["priorityClassName"] = settings.priority_class
        if settings.host_network:
            pod |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        if settings.volume is not None:
            pod["volumes"] = [volume(settings)]
        return pod

    def _selectors(self) -> dict[str, str]:
        selectors = dict(self._settings.node_selector)
        if self._launch.tpu is not None:
            selectors |= self._launch.tpu.node_selectors
        if self._settings.gpu:
            selectors[GKE_GPU] = self._settings.gpu
        if self._settings.spot:
            selectors[_GKE_SPOT] = "true"
        return selectors

    def _container(self, accelerator: str | None) -> dict[str, Any]:
        tpu = self._launch.tpu
        chips = tpu.chips_per_host if tpu is not None else self._settings.gpus
        devices = {} if accelerator is None else {accelerator: chips}
        asked = {"cpu": self._settings.cpu, "memory": self._settings.memory}
        requests = {key: value for key, value in asked.items() if value is not None} | devices
        ports = [*(_TPU_PORTS if tpu is not None else ()), self._settings.port]
        return {
            "name": _CONTAINER,
            "image": self._image,
            "command": list(self._shipment.command),
            "ports": [{"containerPort": port} for port in ports],
            "env": self._variables(),
            **({"resources": {"limits": devices, "requests": requests}} if requests else {}),
            **({"volumeMounts": [mount(self._settings)]} if self._settings.volume else {}),
        }

    def _variables(self) -> list[dict[str, Any]]:
        """Returns by what a host knows its place, what its records tell of it, and the token."""
        name = self._launch.name
        plain = self._settings.environment | {
            IMAGE: self._image,
            "ORBAX_BENCH_HEAD": f"{name}-{_JOB}-0-0.{name}:{self._settings.port}",
            "ORBAX_BENCH_NUM_HOSTS": str(self._launch.hosts),
            "ORBAX_BENCH_HOSTS_PER_JOB": str(self._each),
        }
        if _GKE_POOL in self._settings.node_selector:
            plain["ORBAX_BENCH_NODE_POOL"] = self._settings.node_selector[_GKE_POOL]
        of_the_pod = {
            "ORBAX_BENCH_JOB_INDEX": _label("jobset.sigs.k8s.io/job-index"),
            "ORBAX_BENCH_RESTARTS": _label("jobset.sigs.k8s.io/restart-attempt"),
            "ORBAX_BENCH_NODE": "spec.nodeName",
        }
        secret = {"name": self._secret_name, "key": _TOKEN_KEY}
        return [
            {"name": TOKEN, "valueFrom": {"secretKeyRef": secret}},
            *({"name": key, "value": value} for key, value in plain.items()),
            *(
                {"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}}
                for key, path in of_the_pod.items()
            ),
        ]

    @property
    def _secret_name(self) -> str:
        return f"{self._launch.name}-token"

    def _secret(self, token: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._secret_name, "labels": dict(OURS)},
            "type": "Opaque",
            "stringData": {_TOKEN_KEY: token},
        }


def _label(name: str) -> str:
    return f"metadata.labels['{name}']"
