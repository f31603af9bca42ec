"""The placement of steps: image, machine and volumes, as a pipeline's builder gives them out."""

from __future__ import annotations

import dataclasses
from typing import Any

from orbax_bench_core.launchers import GKE_RESOURCE, SliceShape
from orbax_bench_pipelines.target import Target
from orbax_bench_pipelines.targets.settings import Settings, launcher_of, launcher_settings


@dataclasses.dataclass(frozen=True)
class Placement:
    """Places steps as the settings ask.

    A builder hands each step to `place` or, when it measures, to `measure_on`. Accelerators and
    node selectors cannot come from the items of a loop: every kind of slice is a loop of its own.

    Attributes:
        target: Where the pipeline runs.
        settings: What was set.
        folder_per_run: Whether each run writes to a folder of its own below the output directory,
            as the runs of a schedule must: a second run would find the first one finished.
    """

    target: Target = Target.LOCAL
    settings: Settings = dataclasses.field(default_factory=Settings)
    folder_per_run: bool = False

    @property
    def slices(self) -> tuple[SliceShape | None, ...]:
        """The kinds of slices to measure on; one None where steps take what machine they get."""
        return self.settings.tpu or (None,)

    @property
    def parallelism(self) -> int | None:
        """How many points are measured at a time; None for no limit.

        On a cluster one by default: points that run at the same time share the storage. On one
        machine they wait for each other in any case.
        """
        if self.settings.parallelism is not None:
            return self.settings.parallelism or None
        return 1 if self.target in (Target.KFP, Target.VERTEX) else None

    def launcher(self, shape: SliceShape | None) -> str:
        """Returns what starts the hosts of a slice; empty where the step measures itself.

        A step is one machine, and Vertex AI gives it no TPUs.
        """
        return launcher_of(self.target, shape)

    def launching(self, shape: SliceShape | None) -> dict[str, Any]:
        """Returns the inputs of run-sweep-point that say where a point is measured."""
        launcher = self.launcher(shape)
        if shape is None or not launcher:
            return {}
        given = launcher_settings(launcher, self.settings)
        return {
            "launcher": launcher,
            "tpu": f"{shape}:{shape.machine_type}",
            "launcher_settings": [f"{key}={value}" for key, value in given.items()],
        }

    def place(self, task: Any) -> Any:
        """Gives a step its image, volumes and labels.

        Args:
            task: A step, of `kfp.dsl.PipelineTask`.

        Returns:
            The same step.
        """
        if self.settings.image is not None:
            task.set_container_image(self.settings.image)
            # What was baked in is the tag that it was built under, on whatever machine.
            task.set_env_variable("ORBAX_BENCH_IMAGE", self.settings.image)
        if self.target is Target.KFP:
            from kfp import kubernetes

            for claim in self.settings.pvc:
                kubernetes.mount_pvc(task, pvc_name=claim.name, mount_path=claim.path)
            for key, value in self.settings.labels.items():
                kubernetes.add_pod_label(task, key, value)
        return task

    def measure_on(self, shape: SliceShape | None, task: Any) -> Any:
        """Gives a step that measures its machine as well, and keeps it from being cached.

        Of a step that launches hosts on Kubeflow, what is said here of machines is for the hosts.

        Args:
            shape: The slice to measure on; None for a machine without one.
            task: A step, of `kfp.dsl.PipelineTask`.

        Returns:
            The same step.
        """
        self.place(task).set_caching_options(False)
        if self.target is Target.VERTEX and self.launcher(shape):
            return task  # it waits for hosts whose machines the slice tells
        if self.settings.cpu is not None:
            task.set_cpu_limit(self.settings.cpu).set_cpu_request(self.settings.cpu)
        if self.settings.memory is not None:
            task.set_memory_limit(self.settings.memory).set_memory_request(self.settings.memory)
        if self.target is Target.KFP:
            self._onto_nodes(shape, task)
        return task

    def _onto_nodes(self, shape: SliceShape | None, task: Any) -> None:
        from kfp import kubernetes

        selectors = dict(self.settings.node_selectors)
        if shape is not None and not self.launcher(shape):
            selectors |= shape.node_selectors
            task.set_accelerator_type(GKE_RESOURCE).set_accelerator_limit(shape.chips)
            kubernetes.add_toleration(task, key=GKE_RESOURCE, operator="Exists")
        for key, value in selectors.items():
            kubernetes.add_node_selector(task, key, value)
        for toleration in self.settings.tolerations:
            kubernetes.add_toleration(task, **toleration.model_dump(exclude_none=True))
