"""The steps that several pipelines have: make what is loaded, measure each point, judge."""

from typing import Any

from kfp import dsl

from orbax_bench_components.aggregate import aggregate
from orbax_bench_components.compare_baseline import compare_baseline
from orbax_bench_components.generate_checkpoint import generate_checkpoint
from orbax_bench_components.plan_sweep import plan_sweep
from orbax_bench_components.run_sweep_point import run_sweep_point
from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.tpu import SliceShape


def make_checkpoint(placement: Placement, *, suite: Any, fixture: Any) -> Any:
    """Adds the step that makes the checkpoint which a suite loads, unless it is there already.

    Args:
        placement: Where the step runs.
        suite: The suite file, word for word.
        fixture: A suite file to generate the checkpoint from; empty for none.

    Returns:
        The checkpoint, an output of generate-checkpoint.
    """
    made = placement.place(generate_checkpoint(suite=suite, fixture=fixture))
    return made.outputs["checkpoint"]


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
        checkpoint: What `make_checkpoint` returned.
        arms: An `arms` block, as YAML, for a suite that has none.
        **measuring: Further inputs of run-sweep-point.

    Returns:
        The samples, an output of aggregate.
    """
    plan = plan_sweep(suite=suite, output_directory=output_directory, arms=arms)
    placement.place(plan).set_caching_options(False)
    name = "points" if shape is None else f"points-{shape.name}"
    with dsl.ParallelFor(plan.output, name=name, parallelism=placement.parallelism) as point:
        measured = run_sweep_point(
            point=point,
            output_directory=output_directory,
            checkpoint=checkpoint,
            **measuring,
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
        samples: What `measure_points` returned, which it waits for.
        baseline: A stored baseline to compare with; empty for a run that has both arms.

    Returns:
        The step, of `kfp.dsl.PipelineTask`.
    """
    compared = compare_baseline(
        output_directory=output_directory, baseline=baseline, samples=samples
    )
    return placement.place(compared).set_caching_options(False)
