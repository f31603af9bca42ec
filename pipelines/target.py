"""Targets of a pipeline, and the packages that they take."""

import enum
from typing import Final


class Target(enum.StrEnum):
    """Place where a pipeline runs."""

    LOCAL = "local"
    DOCKER = "docker"
    KFP = "kfp"
    VERTEX = "vertex"


SERVICES: Final = (Target.KFP, Target.VERTEX)
"""Targets that are services: what runs there is submitted."""


class Package(enum.StrEnum):
    """Kind of a compiled package: two documents for GKE, one for anything else."""

    GKE = "gke"
    KFP = "kfp"
    VERTEX = "vertex"
    DOCKER = "docker"
    LOCAL = "local"

    @property
    def target(self) -> Target:
        """Where such a package runs; GKE is Kubeflow on it."""
        return Target.KFP if self is Package.GKE else Target(self.value)
