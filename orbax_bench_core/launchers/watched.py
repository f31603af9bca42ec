"""Kinds of objects on Kubernetes that consist of pods, and one of them that is watched."""

from __future__ import annotations

import dataclasses
from typing import Final

from orbax_bench_core.launchers.kubernetes_api import Object


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of object that consists of pods.

    Attributes:
        group: Its API group.
        version: Version of that.
        plural: Its name in paths.
        name: Its name in manifests.
        remedy: What a cluster without it needs.
    """

    group: str
    version: str
    plural: str
    name: str
    remedy: str

    @property
    def api_version(self) -> str:
        """As manifests write it."""
        return f"{self.group}/{self.version}"


JOBSET: Final = Kind(
    group="jobset.x-k8s.io",
    version="v1alpha2",
    plural="jobsets",
    name="JobSet",
    remedy="install JobSet: https://jobset.sigs.k8s.io/docs/installation/",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watched:
    """Objects that are created, and those that are looked at.

    Attributes:
        kind: Kind of the object.
        manifest: The object.
        secret: A Secret that its pods need; None for none.
        hosts: How many pods there are in all that have to start.
        head_job: Replicated job of the pod whose log is shown.
        container: Container of that pod.
        output_directory: The run directory, which logs of failed pods go to.
    """

    kind: Kind
    manifest: Object
    secret: Object | None
    hosts: int
    head_job: str
    container: str
    output_directory: str
