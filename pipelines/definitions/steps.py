"""Steps of a pipeline on one slice: what all pipelines have, and what some add."""

# No postponed annotations in this package: kfp reads types from signatures.
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orbax_bench_pipelines.targets import Placement, SliceShape

if TYPE_CHECKING:
    from orbax_bench_pipelines.definitions.pipeline import Pipeline


@dataclasses.dataclass
class Steps:
    """The steps on one slice, one added after the other."""

    placement: Placement
    shape: SliceShape | None  # the slice to measure on; None for a machine without one
    given: Mapping[str, Any]  # the parameters of the pipeline
    directory: Any  # the run directory of this slice
    begun: Any  # the step that began the run
    measured: Any = None  # the loop of the steps that measure

    def add(self, component: str, **inputs: Any) -> Any:
        """Adds a step, placed."""
        return self.placement.place(_step(component, **inputs))

    def measure(self, **measuring: Any) -> None:
        """Adds the steps that measure the points of the plan, in batches."""
        from kfp import dsl

        placement, shape = self.placement, self.shape
        name = "points" if shape is None else f"points-{shape.name}"
        steps, at_once = self.begun.outputs["Output"], placement.parallelism
        with dsl.ParallelFor(steps, name=name, parallelism=at_once) as batch:
            step = _step(
                "run-sweep-point",
                point=batch,
                output_directory=self.directory,
                checkpoint=self.begun.outputs["checkpoint"],
                **measuring,
                **placement.launching(shape),
            )
            self.measured = placement.measure_on(shape, step)

    def aggregate(self) -> Any:
        """Adds the step that puts the records together, and the one that fails if any lack."""
        together = self._after_all("aggregate")
        self.add("enforce-verdict", lacking=together.outputs["Output"])
        return together

    def judge(self, **how: Any) -> None:
        """Adds the step that puts the records together, gives the verdict, and fails by it."""
        stored = {"stored": self.begun.outputs["stored"]} if "baseline" in how else {}
        self._after_all("judge-run", **stored, **how)

    def _after_all(self, component: str, **inputs: Any) -> Any:
        """Adds a step after the measuring ones, of which nothing is collected: they may be many."""
        planned = self.begun.outputs["planned"]
        step = self.add(component, output_directory=self.directory, planned=planned, **inputs)
        return step.after(self.measured)


def _step(component: str, **inputs: Any) -> Any:
    """Returns a step with the id of the run, so that no cache answers it."""
    from kfp import dsl

    from orbax_bench_components.compile import COMPONENTS
    from orbax_bench_pipelines.definitions.own import begin_run, judge_run

    own = (begin_run, judge_run)
    found = next(each for each in (*COMPONENTS, *own) if each.name == component)
    return found(pipeline_run=dsl.PIPELINE_JOB_ID_PLACEHOLDER, **inputs)


def add_steps(pipeline: "Pipeline", placement: Placement, given: Mapping[str, Any]) -> None:
    """Adds all steps of a pipeline: those of one slice after the other, and the exit task.

    The exit task runs whatever becomes of the others, which simply depend on each other: Kubeflow
    accepts no other step that is to run after one that failed. It writes the report then.
    """
    from kfp import dsl

    shapes = placement.settings.machines
    slices = [shape.name for shape in shapes if shape and len(shapes) > 1]
    ended = placement.place(
        _step(
            "finish",
            output_directory=given["output_directory"],
            suite=given["suite"],
            folder_per_run=placement.folder_per_run,
            slices=slices,
            go_on=given["go_on"],
        )
    )
    with dsl.ExitHandler(ended, name="run"):
        before = None
        for shape in shapes:
            begun = _begin(pipeline, placement, shape, given)
            if before is not None:  # two that begin at once would make one checkpoint
                begun.after(before)
            before = begun
            _add_slice(
                pipeline, Steps(placement, shape, given, _directory(placement, begun, given), begun)
            )


def _begin(
    pipeline: "Pipeline", placement: Placement, shape: SliceShape | None, given: Mapping[str, Any]
) -> Any:
    """Adds the step that begins the run of one slice."""
    hosts = placement.settings.hosts_of(shape)
    inputs = ("suite", "output_directory", "baseline", "fixture", "points_per_step", "go_on")
    how = {name: given[name] for name in inputs if name in given}
    if hosts > 1:
        how["processes"] = hosts
    if placement.folder_per_run:
        how["folder_per_run"] = True
    if shape is not None and len(placement.settings.machines) > 1:
        how["slice_name"] = shape.name
    arms = given.get("arms", "") if pipeline.arms is None else pipeline.arms
    return placement.place(_step("begin-run", arms=arms, **how))


def _directory(placement: Placement, begun: Any, given: Mapping[str, Any]) -> Any:
    """Returns the run directory: that of the pipeline, unless runs or slices share it.

    A pipeline whose steps take it from another step is for a service: inside a loop kfp's local
    runner confuses the output of another step with the item.
    """
    shared = placement.folder_per_run or len(placement.settings.machines) > 1
    return begun.outputs["directory"] if shared else given["output_directory"]


def _add_slice(pipeline: "Pipeline", steps: Steps) -> None:
    inputs = ("keep_data", "enable_hlo_dump", "measure_limits", "lock")
    given = {name: steps.given[name] for name in inputs if name in steps.given}
    steps.measure(**{**pipeline.measuring, **given})
    pipeline.add(steps)
