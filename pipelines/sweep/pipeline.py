"""The sweep pipeline: plan, make what is loaded, measure each point, put together, compare."""

from collections.abc import Callable
from typing import Any

from kfp import dsl

from orbax_bench_components.aggregate import aggregate
from orbax_bench_components.compare_baseline import compare_baseline
from orbax_bench_components.generate_checkpoint import generate_checkpoint
from orbax_bench_components.plan_sweep import plan_sweep
from orbax_bench_components.run_sweep_point import run_sweep_point
from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.tpu import SliceShape


def build(placement: Placement) -> Any:
    """Returns the pipeline, placed.

    Args:
        placement: Where its steps run.
    """

    @dsl.pipeline(name="orbax-bench-sweep")
    def sweep(
        suite: str,
        output_directory: str,
        fixture: str = "",
        baseline: str = "",
        remove_repeated_dir: bool = False,
        enable_hlo_dump: bool = False,
        measure_limits: bool = True,
    ) -> None:
        """Measures every sweep point of a suite and reports on all of them.

        Args:
            suite: The suite file, word for word.
            output_directory: The run directory, local or gs://, reachable from every step.
            fixture: A suite file to generate the checkpoint from that load-only points read.
            baseline: A stored baseline or a run directory to compare with; empty for none.
            remove_repeated_dir: Whether checkpoint data is deleted after each repeat.
            enable_hlo_dump: Whether XLA writes its HLO protos into the run directory.
            measure_limits: Whether to measure what machine and storage can do, once per run.
        """
        checkpoint = placement.place(generate_checkpoint(suite=suite, fixture=fixture))
        placement.on_each_slice(
            lambda shape: _sweep_on(shape, placement),
            suite=suite,
            output_directory=output_directory,
            checkpoint=checkpoint.outputs["checkpoint"],
            baseline=baseline,
            remove_repeated_dir=remove_repeated_dir,
            enable_hlo_dump=enable_hlo_dump,
            measure_limits=measure_limits,
        )

    return sweep


def _sweep_on(shape: SliceShape | None, placement: Placement) -> Callable[..., None]:
    def add_steps(
        suite: str,
        output_directory: str,
        checkpoint: Any,
        baseline: str,
        remove_repeated_dir: bool,
        enable_hlo_dump: bool,
        measure_limits: bool,
    ) -> None:
        plan = placement.place(plan_sweep(suite=suite, output_directory=output_directory))
        plan.set_caching_options(False)
        name = "points" if shape is None else f"points-{shape.name}"
        with dsl.ParallelFor(plan.output, name=name, parallelism=placement.parallelism) as point:
            measured = run_sweep_point(
                point=point,
                output_directory=output_directory,
                checkpoint=checkpoint,
                remove_repeated_dir=remove_repeated_dir,
                enable_hlo_dump=enable_hlo_dump,
                measure_limits=measure_limits,
            )
            placement.measure_on(shape, measured)
        together = aggregate(
            records=dsl.Collected(measured.outputs["records"]), output_directory=output_directory
        )
        placement.place(together).set_caching_options(False)
        with dsl.If(baseline != "", name="has-baseline"):
            compared = compare_baseline(
                baseline=baseline,
                output_directory=output_directory,
                samples=together.outputs["samples"],
            )
            placement.place(compared).set_caching_options(False)

    return add_steps
