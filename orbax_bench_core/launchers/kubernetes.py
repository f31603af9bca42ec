"""Places on Kubernetes: one object that consists of pods, and what all have of it."""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

import yaml

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers.kubernetes_settings import KubernetesSettings
from orbax_bench_core.launchers.launch import Launch
from orbax_bench_core.launchers.shipping import require_digest, require_shared, shipment

Object = dict[str, Any]
"""An object of Kubernetes, or a part of one, as JSON has it."""

OURS: Final = {"app.kubernetes.io/managed-by": "orbax-bench"}
"""Label of what a launcher has created."""
QUEUE: Final = "kueue.x-k8s.io/queue-name"
"""Label of the queue by which Kueue admits a job."""
FINGERPRINT: Final = "orbax-bench/launch"
"""Annotation with a hash, by which a launcher knows what it has created before."""

_LOCKED_KIB: Final = 2**36
"""Memory that GKE's guide to TPUs has a container lock, so that its driver can share it."""
_LOCKING: Final = (
    *("/bin/sh", "-c"),
    f'ulimit -l {_LOCKED_KIB} || echo "locked memory stays at $(ulimit -l) KiB" >&2; exec "$@"',
    "sh",
)
"""A shell that raises the limit of locked memory and becomes the command behind it."""
_RAISES: Final = "SYS_RESOURCE"
"""The capability that raising the limit takes; Kubernetes gives one that is added to root alone."""


class ObjectKind(NamedTuple):
    """A kind of object that consists of pods."""

    group: str
    version: str
    plural: str
    name: str
    remedy: str


class PodsLauncher:
    """Creates one object of so many `pods`, shows the log of host 0, and deletes it at the end."""

    place: ClassVar[str]
    kind: ClassVar[ObjectKind]
    head_job: ClassVar[str]  # replicated job of the pod of host 0
    container: ClassVar[str]
    pods: int

    def __init__(self, launch: Launch, settings: KubernetesSettings) -> None:
        """Checks what is to be started."""
        self.image = require_digest(launch, self.place)
        require_shared(launch, self.place, settings.mounted, mount="volume=CLAIM:PATH")
        self.launch = launch
        self.settings = settings
        self.shipment = shipment(launch, in_image=settings.suite_in_image, mounted=settings.mounted)

    def shown(self) -> str:
        """Returns the manifests, whose token is made at the start."""
        secret = self.secret("made at the start, and never shown")
        documents = [self.manifest(), *([] if secret is None else [secret])]
        return f"# {self.shipment.said}\n{yaml.safe_dump_all(documents, sort_keys=False)}"

    def start(self) -> int:
        """Creates all, prints what host 0 prints, and deletes all at the end.

        Returns:
            The exit code of the command on host 0.

        Raises:
            UserError: The client is not installed, or the cluster refuses what is created.
        """
        try:
            import kubernetes  # noqa: F401
        except ImportError:
            raise UserError(
                "cannot import `kubernetes`, the client that creates what is launched: "
                "pip install 'orbax-bench[kubernetes]', or save what --dry-run prints, with a "
                "token in it, and `kubectl apply` it"
            ) from None
        from orbax_bench_core.launchers.followed import followed

        return followed(self)

    def manifest(self) -> Object:
        """Returns the object, whose annotation has a hash of all that it says."""
        labels = {**OURS, **({QUEUE: self.settings.queue} if self.settings.queue else {})}
        spec = self.spec()
        said = json.dumps([labels, spec, self.shipment.digest], sort_keys=True)
        digest = {FINGERPRINT: hashlib.sha256(said.encode()).hexdigest()[:16]}
        return {
            "apiVersion": f"{self.kind.group}/{self.kind.version}",
            "kind": self.kind.name,
            "metadata": {
                "name": self.launch.name,
                "labels": labels,
                "annotations": {**self.annotations(), **digest},
            },
            "spec": spec,
        }

    def spec(self) -> Object:
        """Returns the parts of the object."""
        raise NotImplementedError

    def annotations(self) -> dict[str, str]:
        """Returns the annotations of the object beside the hash."""
        return {}

    def secret(self, token: str) -> Object | None:
        """Returns the Secret that the pods need; None for none."""
        del token
        return None

    def template(self, pod: Object, container: Object) -> Object:
        """Returns the template of the pods of host 0, with what settings say of all places."""
        settings = self.settings
        given = {
            "serviceAccountName": settings.service_account,
            "priorityClassName": settings.priority_class,
        }
        spec = {
            **pod,
            "containers": [container],
            **self._security(),
            **{key: name for key, name in given.items() if name},
        }
        if settings.volume is not None:
            claim = {"claimName": settings.volume.partition(":")[0]}
            spec["volumes"] = [{"name": "run", "persistentVolumeClaim": claim}]
        return {"metadata": {"labels": dict(OURS)}, "spec": spec}

    @property
    def with_tpus(self) -> bool:
        """Whether the container that runs the command has TPUs itself."""
        return False

    def bench(self, more: Object, limits: Mapping[str, int] | None = None) -> Object:
        """Returns the container that runs the command; `limits` are the devices that it has."""
        settings = self.settings
        disk = {"ephemeral-storage": settings.ephemeral_storage}
        asked = {"cpu": settings.cpu, "memory": settings.memory, **disk}
        requests = {key: value for key, value in asked.items() if value} | {**(limits or {})}
        bounds = {**(limits or {}), **{key: value for key, value in disk.items() if value}}
        bounded = limits is not None or bounds
        resources = {**({"limits": bounds} if bounded else {}), "requests": requests}
        mount = {"name": "run", "mountPath": self.settings.mounted}
        return {
            "name": self.container,
            "image": self.image,
            "command": [*(_LOCKING if self._raises else ()), *self.shipment.command],
            **more,
            **self._allowed(),
            **({"resources": resources} if requests else {}),
            **({"volumeMounts": [mount]} if self.settings.volume else {}),
        }

    @property
    def _capabilities(self) -> list[str]:
        """The capabilities that are added: with TPUs the one that GKE's guide names."""
        given = self.settings.capabilities
        return given if given is not None else [_RAISES] if self.with_tpus else []

    @property
    def _raises(self) -> bool:
        """Whether the command raises the limit of locked memory before all else."""
        allowed = self.settings.privileged or _RAISES in self._capabilities
        return self.with_tpus and allowed

    def _allowed(self) -> Object:
        """Returns the extra rights of the container; empty for none."""
        context: Object = {"privileged": True} if self.settings.privileged else {}
        if self._capabilities:
            context["capabilities"] = {"add": self._capabilities}
        return {"securityContext": context} if context else {}

    def _security(self) -> Object:
        """Returns who the processes of a pod are; empty for the user of the image."""
        settings = self.settings
        shared = settings.mounted_here
        context: Object = {"runAsUser": os.getuid(), "runAsGroup": os.getgid()} if shared else {}
        if self._raises and not shared:
            # Devices of TPUs, and capabilities that are added, are root's.
            context = {"runAsUser": 0}
        given = {
            "runAsUser": settings.run_as_user,
            "runAsGroup": settings.run_as_group,
            "fsGroup": settings.fs_group,
            "fsGroupChangePolicy": None if settings.fs_group is None else "OnRootMismatch",
        }
        context |= {key: value for key, value in given.items() if value is not None}
        return {"securityContext": context} if context else {}


def variables(plain: Mapping[str, str], fields: Mapping[str, str]) -> list[Object]:
    """Returns variables of a container: plain ones, and those that are fields of its pod.

    Args:
        plain: Values by name.
        fields: Paths of fields of the pod by name, such as `metadata.name`.
    """
    return [
        *({"name": key, "value": value} for key, value in plain.items()),
        *(
            {"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for key, path in fields.items()
        ),
    ]
