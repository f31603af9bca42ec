"""Pathways jobs: one process that drives the devices of all hosts, on Kubernetes."""

from typing import Annotated, Final

import pydantic

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import kubernetes, kubernetes_settings
from orbax_bench_core.launchers.launch import Launch
from orbax_bench_core.launchers.shipping import is_digest, require_jobset_names
from orbax_bench_core.launchers.tpus import GENERATIONS
from orbax_bench_core.provenance import IMAGE

HEAD_JOB: Final = "pathways-head"
_PROXY_PORT: Final = 29000
_MACHINES: Final = tuple(
    machine for each in GENERATIONS for chips, machine in each.machines.items() if chips > 1
)
"""Machine types that a PathwaysJob takes, in version 0.1.4 of its definition."""


def _by_digest(image: str | None) -> str | None:
    if image is not None and not is_digest(image):
        raise ValueError(f"expected NAME@sha256:DIGEST, got {image!r}")
    return image


def _in_a_bucket(folder: str | None) -> str | None:
    if folder is not None and not folder.startswith("gs://"):
        raise ValueError(f"Pathways keeps its files in a bucket only: gs://..., got {folder!r}")
    return folder


class ServerSettings(ConfigModel):
    """Settings of the servers of Pathways."""

    pathways_dir: Annotated[str | None, pydantic.AfterValidator(_in_a_bucket)] = None
    pathways_version: kubernetes_settings.Text | None = None
    sidecar_image: Annotated[str | None, pydantic.AfterValidator(_by_digest)] = None


class PathwaysSettings(kubernetes_settings.KubernetesSettings, ServerSettings):
    """Settings of a Pathways job, which docs/launch/pathways.md explains."""

    restarts: int = pydantic.Field(default=1, ge=0)
    proxy_timeout_s: int = pydantic.Field(default=600, ge=1)


class Pathways(kubernetes.PodsLauncher):
    """Starts one process, which sees the devices of all hosts as its own, beside the servers."""

    place = "pathways"
    kind = kubernetes.ObjectKind(
        group="pathways-job.pathways.domain",
        version="v1",
        plural="pathwaysjobs",
        name="PathwaysJob",
        remedy="install PathwaysJob and JobSet: https://github.com/google/pathways-job",
    )
    head_job = HEAD_JOB
    container = "main"
    settings: PathwaysSettings

    def __init__(self, launch: Launch, settings: PathwaysSettings) -> None:
        """Checks what is to be started."""
        if launch.tpu is None:
            raise UserError("--on pathways needs --tpu TYPE:TOPOLOGY, such as v5e:4x8")
        if launch.tpu.machine_type not in _MACHINES:
            raise UserError(
                f"--on pathways: a PathwaysJob has no machines {launch.tpu.machine_type}, which "
                f"TPU {launch.tpu} consists of; it has {', '.join(_MACHINES)}"
            )
        super().__init__(launch, settings)
        self.pods = 1 + launch.hosts
        jobs = {HEAD_JOB: (1, 1), "worker": (launch.slices, launch.tpu.hosts)}
        require_jobset_names(launch.name, jobs, head=HEAD_JOB)
        self._folder = pathways_folder(launch, "pathways", settings.pathways_dir)
        self._workers = {
            "type": launch.tpu.machine_type,
            "topology": launch.tpu.topology,
            "numSlices": launch.slices,
        }

    def spec(self) -> kubernetes.Object:
        """Returns the process, and the slices whose devices it drives."""
        settings = self.settings
        workers = dict(self._workers)
        if settings.priority_class:
            workers["priorityClassName"] = settings.priority_class
        container = self.bench({"env": self._variables()})
        spec = {
            "maxRestarts": settings.restarts,
            "pathwaysDir": self._folder,
            "workers": [workers],
            "controller": {
                "deploymentMode": "default",
                "mainContainerName": self.container,
                "template": self.template({"restartPolicy": "Never"}, container),
            },
        }
        if settings.pathways_version:
            spec["pathwaysVersion"] = settings.pathways_version
        if settings.sidecar_image:
            spec["customComponents"] = [
                {"componentType": "colocated_python_sidecar", "image": settings.sidecar_image}
            ]
        return spec

    def _variables(self) -> list[kubernetes.Object]:
        """Returns by what JAX finds the proxy; the job's controller sets the same once more."""
        plain = self.settings.environment | {
            IMAGE: self.image,
            "ORBAX_BENCH_CLUSTER": "none",
            "XCLOUD_ENVIRONMENT": "GCP",
            "JAX_PLATFORMS": "proxy",
            "JAX_BACKEND_TARGET": f"grpc://$(PATHWAYS_HEAD):{_PROXY_PORT}",
            "PATHWAYS_PROXY_CONNECTION_TIMEOUT_SECS": str(self.settings.proxy_timeout_s),
        }
        fields = {
            "PATHWAYS_HEAD": "metadata.labels['jobset.sigs.k8s.io/coordinator']",
            "ORBAX_BENCH_NODE": "spec.nodeName",
        }
        # What a variable names in its value must stand before it.
        return [*kubernetes.variables({}, fields), *kubernetes.variables(plain, {})]


def pathways_folder(launch: Launch, place: str, given: str | None) -> str:
    """Returns the folder of Pathways itself.

    Args:
        launch: What is started.
        place: Name of the place, for the message.
        given: The folder that the settings name; None takes one in the run directory.

    Raises:
        UserError: None is given, and the run directory is in no bucket.
    """
    if given is not None:
        return given
    if launch.output_directory.startswith("gs://"):
        return f"{launch.output_directory.rstrip('/')}/pathways"
    raise UserError(
        f"--on {place} needs --set pathways_dir=gs://BUCKET/FOLDER where the run directory is in "
        "no bucket: Pathways keeps its own files there"
    )
