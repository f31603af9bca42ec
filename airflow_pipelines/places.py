"""Places where the steps of an Airflow task group run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol


class Place(Protocol):
    """Makes the operator of a step."""

    def operator(self) -> tuple[Any, dict[str, Any]]:
        """Returns the class of the operator, and what it is given beside the step's words."""
        ...

    def words(self, step: str, *words: str) -> list[str]:
        """Returns the arguments of a step."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Local:
    """The Airflow worker itself, with orbax-bench in an environment beside Airflow's.

    Attributes:
        command: Path of `orbax-bench`, such as `/opt/bench/bin/orbax-bench`.
        environment: Variables beside those of the worker.
    """

    command: str = "orbax-bench"
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def operator(self) -> tuple[Any, dict[str, Any]]:
        """Returns a process's operator."""
        from orbax_bench_airflow.operators import StepOperator

        return StepOperator, {"command": self.command, "environment": dict(self.environment)}

    def words(self, step: str, *words: str) -> list[str]:
        """Returns the arguments of a step."""
        return [step, *words]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kubernetes:
    """A pod for each step, by Airflow's Kubernetes provider, which waits without a worker.

    Attributes:
        image: The image of the components, by digest.
        pod: What else `KubernetesPodOperator` takes: `namespace`, `node_selector`,
            `container_resources`, `tolerations`, `volumes`.
    """

    image: str
    pod: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def operator(self) -> tuple[Any, dict[str, Any]]:
        """Returns a pod's operator."""
        from orbax_bench_airflow.pod import StepPodOperator

        variables = self.pod.get("env_vars", {})
        if isinstance(variables, Mapping):
            # A pod does not know the digest of its image unless it is told.
            variables = {"ORBAX_BENCH_IMAGE": self.image, **variables}
        return StepPodOperator, {"image": self.image, **self.pod, "env_vars": variables}

    def words(self, step: str, *words: str) -> list[str]:
        """Returns the arguments of a step, with the file that the provider looks for."""
        from orbax_bench_airflow.pod import RESULT

        return [step, *words, "--result", RESULT]
