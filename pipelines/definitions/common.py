"""The type of a pipeline, and the steps that several pipelines have."""

# No postponed annotations in this package: kfp reads types from signatures.
import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from orbax_bench_pipelines.targets import Placement, SliceShape

if TYPE_CHECKING:
    from rich.console import Console


@dataclasses.dataclass(frozen=True)
class Finished:
    """A pipeline that has come to its end.

    Attributes:
        directory: Its output directory.
        arguments: The parameters it ran with.
        failure: Why it failed; None when every step succeeded.
    """

    directory: str
    arguments: Mapping[str, Any]
    failure: str | None


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """One pipeline: what is known of it without importing kfp, and the two functions that do work.

    Attributes:
        name: Its name on the command line.
        summary: One sentence.
        parameters: What can be given by `--set` besides `suite` and `output_directory`, each with
            its default.
        build: Returns the `@dsl.pipeline`, placed, whose parameters are those above.
        conclude: Shows what a run found, and returns the exit code of the command.
        paths: Parameters that are paths, which every step must reach.
        takes_arms: Whether it compares the `arms` of a suite.
        pairs_saves: Whether it compares blocking saves with saves in the background.
    """

    name: str
    summary: str
    parameters: Mapping[str, Any]
    build: Callable[[Placement], Any]
    conclude: Callable[[Finished, "Console"], int]
    paths: tuple[str, ...] = ()
    takes_arms: bool = False
    pairs_saves: bool = False


def make_checkpoint(placement: Placement, *, suite: Any, fixture: Any) -> Any:
    """Adds the step that makes the checkpoint which a suite loads, unless it is there already.

    Args:
        placement: Where the step runs.
        suite: The suite file, word for word.
        fixture: A suite file to generate the checkpoint from; empty for none.

    Returns:
        The checkpoint, an output of generate-checkpoint.
    """
    from orbax_bench_components.generate_checkpoint import generate_checkpoint

    made = placement.place(generate_checkpoint(suite=suite, fixture=fixture))
    return made.outputs["checkpoint"]


def on_each_slice(
    placement: Placement, output_directory: Any, steps: Callable[[SliceShape | None, Any], None]
) -> None:
    """Adds the steps of one slice after the other.

    Where slices or runs share the output directory, a step chooses a folder below it, and the
    other steps get that. Such a pipeline is for a service: inside a loop kfp's local runner
    confuses the output of another step with the item.

    Args:
        placement: Where the steps run.
        output_directory: The pipeline's parameter.
        steps: Adds steps to the pipeline, given a slice and the run directory for it.
    """
    from kfp import dsl

    from orbax_bench_components.image import IMAGE

    choose = dsl.component(choose_folder, base_image=IMAGE, install_kfp_package=False)

    def folder(below: Any, **names: str) -> Any:
        chosen = choose(output_directory=below, **names)
        return placement.place(chosen).set_caching_options(False).output

    directory = output_directory
    if placement.folder_per_run:
        directory = folder(directory, run=dsl.PIPELINE_JOB_ID_PLACEHOLDER)
    for shape in placement.slices:
        own = directory
        if shape is not None and len(placement.slices) > 1:
            own = folder(directory, slice_name=shape.name)
        steps(shape, own)


def choose_folder(output_directory: str, run: str = "", slice_name: str = "") -> str:
    """Names the folder of one run, of one slice, or of both.

    Kubeflow does not reliably put strings together outside of steps (kubeflow/pipelines#11035).

    Args:
        output_directory: What the folder is to lie below.
        run: Id of this run; empty gives runs no folder of their own.
        slice_name: Name of the slice; empty gives slices no folder of their own.

    Returns:
        The folder; that of a run begins with the time in UTC.
    """
    import datetime

    parts = [output_directory.rstrip("/")]
    if run:
        parts.append(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H%M%SZ}-{run[:8]}")
    if slice_name:
        parts.append(slice_name)
    return "/".join(parts)


def measure_points(
    placement: Placement,
    shape: SliceShape | None,
    *,
    suite: Any,
    output_directory: Any,
    checkpoint: Any,
    arms: Any = "",
    **measuring: Any,
) -> Any:
    """Adds the steps that plan a suite, measure its points and put the records together.

    Args:
        placement: Where the steps run.
        shape: The slice to measure on; None for a machine without one.
        suite: The suite file, word for word.
        output_directory: The run directory of this slice.
        checkpoint: The output of `make_checkpoint`.
        arms: An `arms` block, as YAML, for a suite that has none.
        **measuring: Further inputs of run-sweep-point.

    Returns:
        The samples, an output of aggregate.
    """
    from kfp import dsl

    from orbax_bench_components.aggregate import aggregate
    from orbax_bench_components.plan_sweep import plan_sweep
    from orbax_bench_components.run_sweep_point import run_sweep_point, run_sweep_point_on_hosts

    processes = {} if shape is None or shape.hosts == 1 else {"processes": shape.hosts}
    plan = plan_sweep(suite=suite, output_directory=output_directory, arms=arms, **processes)
    placement.place(plan).set_caching_options(False)
    name = "points" if shape is None else f"points-{shape.name}"
    launcher = placement.launcher(shape)
    with dsl.ParallelFor(plan.output, name=name, parallelism=placement.parallelism) as point:
        # Vertex AI knows nothing of what Kubeflow hands on from a task to the hosts it launches.
        measure = run_sweep_point_on_hosts if launcher == "jobset" else run_sweep_point
        measured = measure(
            point=point,
            output_directory=output_directory,
            checkpoint=checkpoint,
            **measuring,
            **placement.launching(shape),
        )
        placement.measure_on(shape, measured)
    together = aggregate(
        records=dsl.Collected(measured.outputs["records"]), output_directory=output_directory
    )
    placement.place(together).set_caching_options(False)
    return together.outputs["samples"]


def judge(placement: Placement, *, output_directory: Any, samples: Any, baseline: Any = "") -> Any:
    """Adds the step that gives the verdict on a run.

    Args:
        placement: Where the step runs.
        output_directory: The run directory.
        samples: The output of `measure_points`, which it waits for.
        baseline: A stored baseline to compare with; empty for a run that has both arms.

    Returns:
        The step, of `kfp.dsl.PipelineTask`.
    """
    from orbax_bench_components.compare_baseline import compare_baseline

    compared = compare_baseline(
        output_directory=output_directory, baseline=baseline, samples=samples
    )
    return placement.place(compared).set_caching_options(False)
