"""The placement of steps: image, machine and volumes, as a pipeline's builder gives them out."""

import dataclasses
from typing import Any, Final

from orbax_bench_core.launchers import SliceShape, expectation, is_digest
from orbax_bench_pipelines.target import Target
from orbax_bench_pipelines.targets.pods import as_pod, onto_nodes
from orbax_bench_pipelines.targets.settings import Settings, launcher_of, launcher_settings
from orbax_bench_pipelines.targets.values import StepSettings

_RETRIES: Final = 2
"""Kubeflow starts a step again whose pod was deleted or evicted, which then goes on from there. It
never does so for a container that ended with a code or was killed for memory: a step itself tries
again what may pass."""
_BACKOFF_S: Final = 60
_BACKOFF_FACTOR: Final = 2.0
_NOT_AGAIN: Final = ("enforce-verdict",)
"""Steps whose failure is the answer, which is the same each time."""


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
        return self.settings.machines

    @property
    def parallelism(self) -> int | None:
        """How many steps measure at a time; None for no limit.

        On a cluster one by default: points that run at the same time share the storage. On one
        machine they wait for each other in any case.
        """
        if self.settings.parallelism is not None:
            return self.settings.parallelism or None
        return 1 if self.target in (Target.KFP, Target.VERTEX) else None

    def launcher(self, shape: SliceShape | None) -> str:
        """Returns what starts the hosts of points; empty where the step measures itself.

        A step is one machine, and Vertex AI gives it no TPUs.
        """
        return launcher_of(self.target, self.settings, shape)

    def launching(self, shape: SliceShape | None) -> dict[str, Any]:
        """Returns the inputs of run-sweep-point that say where a point is measured, and on what."""
        launcher = self.launcher(shape)
        expected = self._expected(shape)
        expecting = {"expect": expected} if expected else {}
        if not launcher:
            return expecting
        given = launcher_settings(launcher, self.settings)
        pairs = [f"{key}={value}" for key, value in given.items()]
        started = {"launcher": launcher, "launcher_settings": pairs}
        # Hosts of a slice are told by the launching step what to expect.
        if shape is None:
            return {**started, **expecting}
        return {**started, "tpu": f"{shape}:{shape.machine_type}"}

    def place(self, task: Any) -> Any:
        """Gives a step its image, and what is set for every step or for it alone.

        No step is served from a cache, which knows nothing of the run directory.
        """
        task.set_caching_options(False)
        own = self.settings.of_step(task.component_spec.name)
        self._run_in(own.image, task)
        for name, value in self.settings.environment.items():
            task.set_env_variable(name, value)
        _give(task, own)
        if own.retries and task.component_spec.name not in _NOT_AGAIN:
            self._try_again(own.retries, task)
        if self.target is Target.KFP:
            as_pod(self.settings, own, task)
        return task

    def measure_on(self, shape: SliceShape | None, task: Any) -> Any:
        """Gives a step that measures its machine as well.

        A step that launches hosts takes any machine: what is said of machines is an input of it.
        """
        self.place(task)
        settings = self.settings
        retries = settings.of_step(task.component_spec.name).retries
        if retries is None and self.target in (Target.KFP, Target.VERTEX):
            self._try_again(_RETRIES, task)
        if self.launcher(shape):
            return task
        _give(task, settings)
        if self.target is Target.KFP:
            onto_nodes(settings, shape, task)
        elif settings.gpu is not None and settings.gpu.kind is not None:
            task.set_accelerator_type(settings.gpu.kind.vertex)
            task.set_accelerator_limit(settings.gpu.count)
        return task

    def _expected(self, shape: SliceShape | None) -> str:
        """Returns the devices that a point is measured on; empty for any."""
        if shape is not None:
            return expectation(shape)
        gpus = self.settings.gpu
        return "" if gpus is None else gpus.on(self.settings.hosts_of(None)).expected

    def _run_in(self, image: str | None, task: Any) -> None:
        """Gives a step its image, and tells it by its digest, which nothing else does."""
        from orbax_bench_components.image import IMAGE

        if image is not None:
            task.set_container_image(image)
        if is_digest(image or IMAGE):
            task.set_env_variable("ORBAX_BENCH_IMAGE", image or IMAGE)

    def _try_again(self, times: int, task: Any) -> None:
        factor, wait = self.settings.backoff_factor, self.settings.backoff_s
        task.set_retry(
            times,
            backoff_duration=f"{_BACKOFF_S if wait is None else wait}s",
            backoff_factor=_BACKOFF_FACTOR if factor is None else float(factor),
        )


def _give(task: Any, asked: Settings | StepSettings) -> None:
    """Gives a step CPUs and memory."""
    if asked.cpu is not None:
        task.set_cpu_limit(asked.cpu).set_cpu_request(asked.cpu)
    if asked.memory is not None:
        task.set_memory_limit(asked.memory).set_memory_request(asked.memory)
