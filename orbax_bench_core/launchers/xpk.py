"""XPK workloads: Google's command line starts the pods of a GKE cluster that it has made."""

import shlex
from typing import Final, Self

import pydantic

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import HEAD_PORT
from orbax_bench_core.launchers import kubernetes_settings, shipping, tpus
from orbax_bench_core.launchers.launch import Launch, call, options, require_client
from orbax_bench_core.launchers.pathways import HEAD_JOB, ServerSettings, pathways_folder
from orbax_bench_core.provenance import IMAGE

_JOB: Final = "slice-job"
_NAMES: Final = {"v5e": "v5litepod", "v7x": "tpu7x"}
"""XPK's names of generations where they are others, which a topology is appended to."""
_SERVERS: Final = "us-docker.pkg.dev/cloud-tpu-v2-images/pathways"
"""Where XPK takes the images of Pathways from."""
_SLICE_MACHINE: Final = 4
"""Chips of the machines that XPK makes slices of, single chips of v6e and v7x aside."""
_NO_CLIENT: Final = (
    "install it in an environment of its own (`pip install xpk` changes versions that others "
    "need), or run what --dry-run prints where it is"
)


class XpkSettings(ServerSettings):
    """Settings of an XPK workload, which docs/launch/xpk.md explains."""

    cluster: str
    project: str | None = None
    zone: str | None = None
    namespace: str | None = None
    enable_pathways: bool = False
    device_type: str | None = None
    priority: str | None = None
    restarts: int = pydantic.Field(default=0, ge=0)
    environment: kubernetes_settings.Environment = {}
    suite_in_image: str | None = None
    keep: bool = False

    @pydantic.model_validator(mode="after")
    def _of_pathways(self) -> Self:
        given = [key for key in ServerSettings.model_fields if getattr(self, key) is not None]
        if given and not self.enable_pathways:
            raise ValueError(f"{', '.join(given)}: only with enable_pathways=true")
        return self


class Xpk:
    """Creates a workload, waits for its end, and deletes it, by the `xpk` program.

    The token is the file that process 0 writes into the run directory: XPK would write one of the
    environment into its manifest, in plain.
    """

    def __init__(self, launch: Launch, settings: XpkSettings) -> None:
        """Checks what is to be started."""
        if (launch.tpu is None) == (settings.device_type is None):
            raise UserError(
                "--on xpk needs --tpu TYPE:TOPOLOGY, or --hosts N --set device_type=NAME for GPUs"
            )
        self._image = shipping.require_digest(launch, "xpk")
        shipping.require_shared(launch, "xpk")
        each = launch.hosts // launch.slices
        jobs = {_JOB: (launch.slices, each)}
        self._pathways: list[str] = []
        if settings.enable_pathways:
            if launch.tpu is None:
                raise UserError(
                    "--on xpk: enable_pathways needs --tpu; Pathways has no GPUs in XPK"
                )
            jobs = {HEAD_JOB: (1, 1), "worker": (launch.slices, each)}
            self._pathways = _pathways_words(launch, settings)
        shipping.require_jobset_names(
            launch.name, jobs, head=HEAD_JOB if settings.enable_pathways else ""
        )
        self._launch = launch
        self._settings = settings
        self._shipment = shipping.shipment(launch, in_image=settings.suite_in_image)
        self._device = (
            {"--device-type": settings.device_type, "--num-nodes": str(launch.hosts)}
            if launch.tpu is None
            else {"--tpu-type": _tpu_type(launch.tpu), "--num-slices": str(launch.slices)}
        )
        self._where = options(
            {
                "--cluster": settings.cluster,
                "--project": settings.project,
                "--zone": settings.zone,
                "--namespace": settings.namespace,
            }
        )

    def shown(self) -> str:
        """Returns the commands."""
        lines = [shlex.join(words) for words in (self.create, self._wait, self._delete)]
        return "\n".join((f"# {self._shipment.said}", *lines))

    def start(self) -> int:
        """Sends the suite, creates the workload, waits for its end, and deletes it.

        Returns:
            The exit code of the command that failed first; 0 if none did.

        Raises:
            UserError: The client `xpk` is not installed here.
        """
        require_client("xpk", _NO_CLIENT)
        self._shipment.send()
        code = call(self.create)
        if code:
            return code
        try:
            return call(self._wait)
        finally:
            if not self._settings.keep:
                call(self._delete)

    @property
    def create(self) -> list[str]:
        """Words of the command that creates the workload."""
        settings = self._settings
        variables = settings.environment | {IMAGE: self._image} | self._place()
        return [
            *("xpk", "workload", "create-pathways" if self._pathways else "create"),
            *("--workload", self._launch.name),
            *self._where,
            *options(self._device),
            *("--docker-image", self._image),
            *self._pathways,
            *("--max-restarts", str(settings.restarts)),
            *options({"--priority": settings.priority}),
            *(word for key, value in variables.items() for word in ("--env", f"{key}={value}")),
            *("--command", shlex.join(self._shipment.command)),
        ]

    @property
    def _wait(self) -> list[str]:
        wait = ("--wait-for-job-completion", self._launch.name)
        return ["xpk", "workload", "list", *self._where, *wait]

    @property
    def _delete(self) -> list[str]:
        which = ("--workload", self._launch.name, "--force")
        return ["xpk", "workload", "delete", *self._where, *which]

    def _place(self) -> dict[str, str]:
        """Returns by what hosts with GPUs know their place; TPUs have the variables of GKE.

        What XPK sets itself lacks the index of a process and the number of them in JAX's words.
        With Pathways one process is all, and XPK sets by what JAX finds the proxy.
        """
        if self._settings.enable_pathways:
            return {"ORBAX_BENCH_CLUSTER": "none"}
        if self._launch.tpu is not None or self._launch.hosts == 1:
            return {}
        name, hosts = self._launch.name, str(self._launch.hosts)
        return {
            "ORBAX_BENCH_HEAD": f"{name}-{_JOB}-0-0.{name}:{HEAD_PORT}",
            "ORBAX_BENCH_NUM_HOSTS": hosts,
            "ORBAX_BENCH_HOSTS_PER_JOB": hosts,
            "ORBAX_BENCH_JOB_INDEX": "0",
        }


def _pathways_words(launch: Launch, settings: XpkSettings) -> list[str]:
    """Returns the arguments of `create-pathways` that `create` does not take.

    XPK's own folder of Pathways is a bucket of Google. Where a sidecar is, the proxy must be told,
    as Orbax's own launcher does.
    """
    words = ["--pathways-gcs-location", pathways_folder(launch, "xpk", settings.pathways_dir)]
    if settings.pathways_version:
        words += ["--server-image", f"{_SERVERS}/server:{settings.pathways_version}"]
        words += ["--proxy-server-image", f"{_SERVERS}/proxy_server:{settings.pathways_version}"]
    if settings.sidecar_image:
        words += ["--colocated-python-sidecar-image", settings.sidecar_image]
        words += ["--custom-pathways-proxy-server-args=--sidecar_name=external"]
    return words


def _tpu_type(shape: tpus.SliceShape) -> str:
    """Returns XPK's name of a slice."""
    machines = shape.generation.machines
    if shape.chips_per_host > _SLICE_MACHINE:
        raise UserError(
            f"--on xpk: XPK makes TPU {shape} of machines with {_SLICE_MACHINE} chips; give --tpu "
            f"{shape}:{machines[_SLICE_MACHINE]}"
        )
    if shape.generation.name == "v5e" and shape.hosts == 1:
        raise UserError(f"--on xpk: XPK has no slices of v5e with one host, such as TPU {shape}")
    name = shape.generation.name
    return f"{_NAMES.get(name, name)}-{shape.topology}"
