"""Pathways jobs: one process that drives the devices of all hosts, on Kubernetes."""

from __future__ import annotations

from typing import Annotated, Any, Final

import pydantic
import yaml

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers.containers import (
    is_digest,
    require_digest,
    require_jobset_names,
    require_shared,
)
from orbax_bench_core.launchers.followed import followed
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
from orbax_bench_core.launchers.watched import Kind, Watched
from orbax_bench_core.provenance import IMAGE

_KIND: Final = Kind(
    group="pathways-job.pathways.domain",
    version="v1",
    plural="pathwaysjobs",
    name="PathwaysJob",
    remedy="install PathwaysJob and JobSet: https://github.com/google/pathways-job",
)
HEAD_JOB: Final = "pathways-head"
_CONTAINER: Final = "main"
_PROXY_PORT: Final = 29000
_MACHINES: Final = (
    "tpu7x-standard-4t",
    "ct6e-standard-4t",
    "ct6e-standard-8t",
    "ct5p-hightpu-4t",
    "ct5lp-hightpu-4t",
    "ct5lp-hightpu-8t",
    "ct4p-hightpu-4t",
)
"""Machine types that a PathwaysJob takes, in version 0.1.4 of its definition."""


def by_digest(image: str | None) -> str | None:
    """Returns the image of a setting; one without a digest is refused."""
    if image is not None and not is_digest(image):
        raise ValueError(f"expected NAME@sha256:DIGEST, got {image!r}")
    return image


def in_a_bucket(folder: str | None) -> str | None:
    """Returns the folder of a setting; one outside of buckets is refused."""
    if folder is not None and not folder.startswith("gs://"):
        raise ValueError(f"Pathways keeps its files in a bucket only: gs://..., got {folder!r}")
    return folder


class PathwaysSettings(KubernetesSettings):
    """Settings of a Pathways job.

    Attributes:
        pathways_dir: `gs://` folder of Pathways itself; by default `pathways` in the run directory.
        pathways_version: Version of the Pathways servers; the newest by default.
        sidecar_image: Image of the colocated Python server, by digest, for
            `load_with_colocated_python`; built with the same JAX as `--image`.
        restarts: How often all is started again when something fails.
        proxy_timeout_s: Longest time until the proxy answers, in whole seconds.
        cpu: CPU that the process asks for, as Kubernetes writes it.
        memory: Memory that it asks for, as Kubernetes writes it.
    """

    pathways_dir: Annotated[str | None, pydantic.AfterValidator(in_a_bucket)] = None
    pathways_version: Text | None = None
    sidecar_image: Annotated[str | None, pydantic.AfterValidator(by_digest)] = None
    restarts: int = pydantic.Field(default=1, ge=0)
    proxy_timeout_s: int = pydantic.Field(default=600, ge=1)
    cpu: Text | None = None
    memory: Text | None = None


class Pathways:
    """Starts one process beside the servers of Pathways, follows it, and deletes all at the end.

    It is no cluster of agents: the process sees the devices of all hosts as its own.
    """

    def __init__(self, launch: Launch, settings: PathwaysSettings) -> None:
        """Checks what is to be started."""
        if launch.tpu is None:
            raise UserError("--on pathways needs --tpu TYPE:TOPOLOGY, such as v5e:4x8")
        if launch.tpu.machine_type not in _MACHINES:
            raise UserError(
                f"--on pathways: a PathwaysJob has no machines {launch.tpu.machine_type}, which "
                f"TPU {launch.tpu} consists of; it has {', '.join(_MACHINES)}"
            )
        self._tpu = launch.tpu
        self._image = require_digest(launch, "pathways")
        require_shared(launch, "pathways", settings.mounted, mount="volume=CLAIM:PATH")
        jobs = {HEAD_JOB: (1, 1), "worker": (launch.slices, launch.tpu.hosts)}
        require_jobset_names(launch.name, jobs, head=HEAD_JOB)
        self._folder = pathways_folder(launch, "pathways", settings.pathways_dir)
        self._launch = launch
        self._settings = settings
        self._shipment = shipment(launch, in_image=settings.suite_in_image)

    def shown(self) -> str:
        """Returns the manifest."""
        return f"# {self._shipment.said}\n{yaml.safe_dump(self.manifest(), sort_keys=False)}"

    def start(self) -> int:
        """Creates the job, prints what the process prints, and deletes all at the end."""
        return followed(self.watched(), self._settings, before=self._shipment.send)

    def watched(self) -> Watched:
        """Returns what is created; its pods are the process, and one for each host."""
        return Watched(
            kind=_KIND,
            manifest=self.manifest(),
            secret=None,
            hosts=1 + self._launch.hosts,
            head_job=HEAD_JOB,
            container=_CONTAINER,
            output_directory=self._launch.output_directory,
        )

    def manifest(self) -> dict[str, Any]:
        """Returns the PathwaysJob, whose annotation has a hash of all that it says."""
        queue = self._settings.queue
        labels = {**OURS, **({QUEUE: queue} if queue else {})}
        spec = self._spec()
        return {
            "apiVersion": _KIND.api_version,
            "kind": _KIND.name,
            "metadata": {
                "name": self._launch.name,
                "labels": labels,
                "annotations": fingerprint(labels, spec, self._shipment.digest),
            },
            "spec": spec,
        }

    def _spec(self) -> dict[str, Any]:
        settings = self._settings
        workers: dict[str, Any] = {
            "type": self._tpu.machine_type,
            "topology": self._tpu.topology,
            "numSlices": self._launch.slices,
        }
        if settings.priority_class:
            workers["priorityClassName"] = settings.priority_class
        spec: dict[str, Any] = {
            "maxRestarts": settings.restarts,
            "pathwaysDir": self._folder,
            "workers": [workers],
            "controller": {
                "deploymentMode": "default",
                "mainContainerName": _CONTAINER,
                "template": {"metadata": {"labels": dict(OURS)}, "spec": self._pod()},
            },
        }
        if settings.pathways_version:
            spec["pathwaysVersion"] = settings.pathways_version
        if settings.sidecar_image:
            spec["customComponents"] = [
                {"componentType": "colocated_python_sidecar", "image": settings.sidecar_image}
            ]
        return spec

    def _pod(self) -> dict[str, Any]:
        settings = self._settings
        asked = {"cpu": settings.cpu, "memory": settings.memory}
        requests = {key: value for key, value in asked.items() if value is not None}
        container = {
            "name": _CONTAINER,
            "image": self._image,
            "command": list(self._shipment.command),
            "env": self._variables(),
            **({"resources": {"requests": requests}} if requests else {}),
            **({"volumeMounts": [mount(settings)]} if settings.volume else {}),
        }
        pod: dict[str, Any] = {
            "restartPolicy": "Never",
            "containers": [container],
            **security(settings),
        }
        if settings.service_account:
            pod["serviceAccountName"] = settings.service_account
        if settings.priority_class:
            pod["priorityClassName"] = settings.priority_class
        if settings.volume is not None:
            pod["volumes"] = [volume(settings)]
        return pod

    def _variables(self) -> list[dict[str, Any]]:
        """Returns by what JAX finds the proxy; the job's controller sets the same once more."""
        head = {"fieldRef": {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/coordinator']"}}
        plain = self._settings.environment | {
            IMAGE: self._image,
            "ORBAX_BENCH_CLUSTER": "none",
            "XCLOUD_ENVIRONMENT": "GCP",
            "JAX_PLATFORMS": "proxy",
            "JAX_BACKEND_TARGET": f"grpc://$(PATHWAYS_HEAD):{_PROXY_PORT}",
            "PATHWAYS_PROXY_CONNECTION_TIMEOUT_SECS": str(self._settings.proxy_timeout_s),
        }
        return [
            {"name": "PATHWAYS_HEAD", "valueFrom": head},
            {
                "name": "ORBAX_BENCH_NODE",
                "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
            },
            *({"name": key, "value": value} for key, value in plain.items()),
        ]


def pathways_folder(launch: Launch, place: str, given: str | None) -> str:
    """Returns the folder of Pathways itself."""
    if given is not None:
        return given
    if launch.output_directory.startswith("gs://"):
        return f"{launch.output_directory.rstrip('/')}/pathways"
    raise UserError(
        f"--on {place} needs --set pathways_dir=gs://BUCKET/FOLDER where the run directory is in "
        "no bucket: Pathways keeps its own files there"
    )
