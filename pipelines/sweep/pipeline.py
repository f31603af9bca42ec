"""The sweep pipeline: plan, make what is loaded, measure each point, put together, compare."""

from typing import Any

from kfp import dsl

from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.steps import judge, make_checkpoint, measure_points
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
        lock: bool = True,
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
            lock: Whether a step waits until nothing else of ours measures on its machine.
        """
        checkpoint = make_checkpoint(placement, suite=suite, fixture=fixture)

        def on_slice(shape: SliceShape | None, directory: Any) -> None:
            samples = measure_points(
                placement,
                shape,
                suite=suite,
                output_directory=directory,
                checkpoint=checkpoint,
                remove_repeated_dir=remove_repeated_dir,
                enable_hlo_dump=enable_hlo_dump,
                measure_limits=measure_limits,
                lock=lock,
            )
            with dsl.If(baseline != "", name="has-baseline"):
                judge(placement, output_directory=directory, samples=samples, baseline=baseline)

        placement.on_each_slice(output_directory, on_slice)

    return sweep
