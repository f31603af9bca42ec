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
    directory: Any  # the run directory of this slice
    given: Mapping[str, Any]  # the parameters of the pipeline
    samples: Any = None  # what aggregate wrote, which later steps wait for
    lacking: Any = None  # what aggregate returned

    def add(self, component: str, **inputs: Any) -> Any:
        """Adds a step, placed."""
        return self.placement.place(_step(component, **inputs))

    def measure(self, checkpoint: Any, *, arms: Any, **measuring: Any) -> None:
        """Adds the steps that plan a suite, measure its points and put the records together."""
        from kfp import dsl

        placement, shape = self.placement, self.shape
        hosts = placement.settings.hosts_of(shape)
        processes = {} if hosts == 1 else {"processes": hosts}
        plan = self.add(
            "plan-sweep",
            suite=self.given["suite"],
            output_directory=self.directory,
            arms=arms,
            points_per_step=self.given["points_per_step"],
            go_on=self.given["go_on"],
            **processes,
        )
        name = "points" if shape is None else f"points-{shape.name}"
        steps, at_once = plan.outputs["Output"], placement.parallelism
        with dsl.ParallelFor(steps, name=name, parallelism=at_once) as batch:
            step = _step(
                "run-sweep-point",
                point=batch,
                output_directory=self.directory,
                checkpoint=checkpoint,
                **measuring,
                **placement.launching(shape),
            )
            measured = placement.measure_on(shape, step)
        # Nothing is collected: that has no room for many.
        together = self.add(
            "aggregate", output_directory=self.directory, planned=plan.outputs["planned"]
        ).after(measured)
        self.samples, self.lacking = together.outputs["samples"], together.outputs["Output"]

    def judge(self, baseline: Any = "") -> Any:
        """Adds the step that gives the verdict on a run, and returns it.

        A baseline becomes an artifact that the step takes, so that a metadata store leads from it
        to the verdict.
        """
        given = {}
        if baseline != "":
            given["stored"] = self.add("bring-baseline", baseline=baseline).outputs["stored"]
        return self.add(
            "compare-baseline", output_directory=self.directory, samples=self.samples, **given
        )

    def enforce(self, **found: Any) -> Any:
        """Adds the step that fails where anything is lacking, and returns it."""
        return self.add("enforce-verdict", lacking=self.lacking, **found)


def _step(component: str, **inputs: Any) -> Any:
    """Returns a step with the id of the run, so that no cache answers it."""
    from kfp import dsl

    from orbax_bench_components.compile import COMPONENTS
    from orbax_bench_pipelines.definitions.own import bring_baseline

    found = next(each for each in (*COMPONENTS, bring_baseline) if each.name == component)
    return found(pipeline_run=dsl.PIPELINE_JOB_ID_PLACEHOLDER, **inputs)


def add_steps(pipeline: "Pipeline", placement: Placement, given: Mapping[str, Any]) -> None:
    """Adds all steps of a pipeline: those of one slice after the other, and the exit task.

    The exit task runs whatever becomes of the others, which simply depend on each other: Kubeflow
    accepts no other step that is to run after one that failed. It writes the report then.

    Where slices or runs share the output directory, a step chooses a folder below it, and the
    other steps get that. Such a pipeline is for a service: inside a loop kfp's local runner
    confuses the output of another step with the item.
    """
    from kfp import dsl

    slices = [
        shape.name
        for shape in placement.settings.machines
        if shape and len(placement.settings.machines) > 1
    ]
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
        _add_slices(pipeline, placement, given)


def _add_slices(pipeline: "Pipeline", placement: Placement, given: Mapping[str, Any]) -> None:
    def folder(below: Any, **how: Any) -> Any:
        return placement.place(_step("choose-folder", output_directory=below, **how)).output

    made = placement.place(
        _step("generate-checkpoint", suite=given["suite"], fixture=given["fixture"])
    )
    directory = given["output_directory"]
    if placement.folder_per_run:
        directory = folder(directory, folder_per_run=True)
    inputs = ("keep_data", "enable_hlo_dump", "measure_limits", "lock")
    measuring = {name: given[name] for name in inputs if name in given}
    arms = given.get("arms", "") if pipeline.arms is None else pipeline.arms
    for shape in placement.settings.machines:
        own = directory
        if shape is not None and len(placement.settings.machines) > 1:
            own = folder(directory, slice_name=shape.name)
        steps = Steps(placement, shape, own, given)
        steps.measure(made.outputs["checkpoint"], arms=arms, **{**pipeline.measuring, **measuring})
        pipeline.add(steps)
