"""The sweep pipeline: plan, make what is loaded, measure each point, put together, compare."""

from kfp import dsl

from orbax_bench_components.aggregate import aggregate
from orbax_bench_components.compare_baseline import compare_baseline
from orbax_bench_components.generate_checkpoint import generate_checkpoint
from orbax_bench_components.plan_sweep import plan_sweep
from orbax_bench_components.run_sweep_point import run_sweep_point


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
        measure_limits: Whether to measure what the machine and the storage can do, once per run.
    """
    plan = plan_sweep(suite=suite, output_directory=output_directory)
    plan.set_caching_options(False)
    checkpoint = generate_checkpoint(suite=suite, fixture=fixture)
    with dsl.ParallelFor(plan.output, name="points") as point:
        measured = run_sweep_point(
            point=point,
            output_directory=output_directory,
            checkpoint=checkpoint.outputs["checkpoint"],
            remove_repeated_dir=remove_repeated_dir,
            enable_hlo_dump=enable_hlo_dump,
            measure_limits=measure_limits,
        )
        measured.set_caching_options(False)
    together = aggregate(
        records=dsl.Collected(measured.outputs["records"]), output_directory=output_directory
    )
    together.set_caching_options(False)
    with dsl.If(baseline != "", name="has-baseline"):
        compared = compare_baseline(
            baseline=baseline,
            output_directory=output_directory,
            samples=together.outputs["samples"],
        )
        compared.set_caching_options(False)
