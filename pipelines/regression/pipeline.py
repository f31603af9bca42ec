"""The regression pipeline: measure both arms, judge, store what passes, fail on a regression."""

from typing import Any

from kfp import dsl

from orbax_bench_components.enforce_verdict import enforce_verdict
from orbax_bench_components.publish_baseline import publish_baseline
from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.steps import judge, make_checkpoint, measure_points
from orbax_bench_pipelines.tpu import SliceShape


def build(placement: Placement) -> Any:
    """Returns the pipeline, placed.

    Args:
        placement: Where its steps run.
    """

    @dsl.pipeline(name="orbax-bench-regression")
    def regression(
        suite: str,
        output_directory: str,
        arms: str = "",
        fixture: str = "",
        baseline: str = "",
        registry: str = "",
        promote: bool = False,
        allow_inconclusive: bool = True,
        remove_repeated_dir: bool = True,
        lock: bool = True,
    ) -> None:
        """Says whether a candidate saves and loads slower than a baseline, and fails if it does.

        Each point is measured in both arms within one step, so on one machine.

        Args:
            suite: The suite file, word for word; with `arms`, unless they are given here or a
                stored baseline is compared with.
            output_directory: The run directory, local or gs://, reachable from every step.
            arms: An `arms` block, as YAML, for a suite that has none; `{}` compares it with itself.
            fixture: A suite file to generate the checkpoint from that load-only points read.
            baseline: A stored baseline to compare with in place of arms, which can only warn.
            registry: Where to capture a run that does not regress; empty for nowhere.
            promote: Whether what is captured becomes the baseline of its points.
            allow_inconclusive: Whether INCONCLUSIVE leaves the pipeline successful.
            remove_repeated_dir: Whether checkpoint data is deleted after each operation.
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
                arms=arms,
                remove_repeated_dir=remove_repeated_dir,
                measure_limits=False,
                lock=lock,
            )
            compared = judge(
                placement, output_directory=directory, samples=samples, baseline=baseline
            )
            verdict = compared.outputs["Output"]
            with (
                dsl.If(verdict != "REGRESSION", name="not-slower"),
                dsl.If(registry != "", name="has-registry"),
            ):
                published = publish_baseline(
                    output_directory=directory,
                    registry=registry,
                    promote=promote,
                    samples=samples,
                )
                placement.place(published).set_caching_options(False)
            enforced = enforce_verdict(
                verdict=verdict,
                allow_inconclusive=allow_inconclusive,
                verdicts=compared.outputs["verdicts"],
            )
            placement.place(enforced).set_caching_options(False)

        placement.on_each_slice(output_directory, on_slice)

    return regression
