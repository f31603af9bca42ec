"""Settings and parts of manifests that every place on Kubernetes has."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Annotated, Any, Final

import pydantic

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.execute import TOKEN

OURS: Final = {"app.kubernetes.io/managed-by": "orbax-bench"}
"""Label of what a launcher has created."""
QUEUE: Final = "kueue.x-k8s.io/queue-name"
"""Label of the queue by which Kueue admits a job."""
FINGERPRINT: Final = "orbax-bench/launch"
"""Annotation with a hash, by which a launcher knows what it has created before."""


def _text(value: object) -> object:
    return str(value) if type(value) in (int, float) else value


Text = Annotated[str, pydantic.BeforeValidator(_text)]
"""Text that may be written as a number: YAML reads `cpu=4` as one."""


def _without_a_token(environment: dict[str, str]) -> dict[str, str]:
    if TOKEN in environment:
        raise ValueError(f"{TOKEN} in a manifest can be read by anyone who may see the pod")
    return environment


Environment = Annotated[dict[str, Text], pydantic.AfterValidator(_without_a_token)]
"""Variables of hosts, which are written into a manifest in plain."""


class KubernetesSettings(ConfigModel):
    """Settings of every place on Kubernetes.

    Attributes:
        namespace: Where to create; by default that of the context, or of the pod this runs in.
        context: Context of the kubeconfig file.
        kubeconfig: That file, where it is not the usual one.
        service_account: Kubernetes service account of the hosts; on GKE it gives access to buckets.
        queue: Kueue's local queue, which admits the job; empty for none.
        priority_class: Priority class of the pods.
        volume: `CLAIM:PATH`, a volume claim that all hosts mount, for a run directory that is not
            in a bucket.
        run_as_user: Number of the user of the hosts. By default that of the image, or where the
            volume is mounted on this machine too, the one who launches: what is made here, hosts
            can write, and the other way round.
        run_as_group: Number of their group, with the same default.
        fs_group: Group that Kubernetes gives the files of the volume to, where its driver can; none
            by default, since it does so with all files of the claim.
        environment: More variables of the hosts.
        suite_in_image: Path of the suite in the image; otherwise the one of this machine is sent.
        timeout_s: Longest time for the whole run, in seconds; none by default. The time in a queue
            does not count here, nor in `start_timeout_s`.
        start_timeout_s: Longest time until all pods run: new nodes, and pulling the image.
        keep: Whether what was created stays at the end, for a look at it.
    """

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None
    service_account: str | None = None
    queue: str | None = None
    priority_class: str | None = None
    volume: str | None = None
    run_as_user: int | None = pydantic.Field(default=None, ge=0)
    run_as_group: int | None = pydantic.Field(default=None, ge=0)
    fs_group: int | None = pydantic.Field(default=None, ge=0)
    environment: Environment = {}
    suite_in_image: str | None = None
    timeout_s: float | None = pydantic.Field(default=None, gt=0)
    start_timeout_s: float = pydantic.Field(default=1800, gt=0)
    keep: bool = False

    @pydantic.field_validator("volume")
    @classmethod
    def _a_claim_and_a_path(cls, volume: str | None) -> str | None:
        claim, _, path = (volume or "a:/a").partition(":")
        if not claim or not path.startswith("/") or path == "/":
            raise ValueError(f"expected CLAIM:/PATH, such as runs:/runs, got {volume!r}")
        return volume

    @property
    def mounted(self) -> str | None:
        """Path at which hosts mount the volume; None without one."""
        return None if self.volume is None else self.volume.partition(":")[2]


def fingerprint(*parts: object) -> dict[str, str]:
    """Returns the annotation that tells one launch from another."""
    text = json.dumps(parts, sort_keys=True)
    return {FINGERPRINT: hashlib.sha256(text.encode()).hexdigest()[:16]}


def volume(settings: KubernetesSettings) -> dict[str, Any]:
    """Returns the volume of a pod in which the run directory lies."""
    claim = str(settings.volume).partition(":")[0]
    return {"name": "run", "persistentVolumeClaim": {"claimName": claim}}


def security(settings: KubernetesSettings) -> dict[str, Any]:
    """Returns who the processes of a pod are, as a part of it; empty for the user of the image."""
    shared = settings.mounted is not None and Path(settings.mounted).is_dir()
    context: dict[str, Any] = (
        {"runAsUser": os.getuid(), "runAsGroup": os.getgid()} if shared else {}
    )
    given = {
        "runAsUser": settings.run_as_user,
        "runAsGroup": settings.run_as_group,
        "fsGroup": settings.fs_group,
    }
    context |= {name: number for name, number in given.items() if number is not None}
    if settings.fs_group is not None:
        context["fsGroupChangePolicy"] = "OnRootMismatch"
    return {"securityContext": context} if context else {}


def mount(settings: KubernetesSettings) -> dict[str, str]:
    """Returns where a container mounts it."""
    return {"name": "run", "mountPath": str(settings.mounted)}
